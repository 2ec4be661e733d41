// What the boxed kernel needs to know about an operator, computed once when it is installed.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <memory>
#include <string>

namespace ascend_sim {

// Where the references of npu and atb operators are registered: a key no tensor has, so that a call with CPU tensors
// alone finds no kernel, as with the real torch_npu.
constexpr auto kReference = c10::DispatchKey::PrivateUse3;

// Where aten operators are registered that the simulation computes by itself, for speed: another key no tensor has.
constexpr auto kOwn = c10::DispatchKey::PrivateUse2;

struct OpInfo {
  explicit OpInfo(const c10::OperatorHandle& op, bool native);

  // Whether argument `index` may be a CPU tensor of one dimension or more beside NPU tensors.
  bool may_be_host(int index) const;

  std::string name;          // "aten::add.Tensor"
  int arguments;
  std::vector<std::string> argument_names;
  int pin_memory = -1;       // positions, -1: none
  int generator = -1;
  int process_group = -1;
  int non_blocking = -1;
  bool native;               // torch_npu has a kernel of its own; otherwise hardware falls back to the CPU
  bool collective;           // c10d
  c10::DispatchKey key = c10::DispatchKey::CPU;  // of the kernel that computes it
  bool mixes_devices;        // may take CPU tensors of one dimension or more beside NPU tensors
  bool synchronizes;         // the host reads a result: not capturable
  bool copies;               // aten::copy_: synchronizes if it blocks and crosses devices
  bool indexes;              // synchronizes if an index is a mask
  bool draws_implicitly;     // random without a generator argument
  bool shapes_only;          // looks at no value of its arguments: rand_like, workspace sizes
  std::vector<bool> writes;  // per argument: the operator writes it
  bool writes_any = false;
  bool free_compute;         // instruments.free_compute() skips it
  bool returns_written;      // every result is an argument the operator writes
  bool makes_fresh;          // aten operator whose first result is a fresh tensor
  std::vector<int> written;  // per result: the argument it is, or -1 for a fresh tensor
  bool casts_format = false;  // npu_format_cast and its kin
  int out_list = -1;         // argument `Tensor[] out` whose elements are the results, though the schema does not say so

  std::atomic<int64_t> launches{0};  // outside graphs
  std::atomic<int64_t> tasks{0};     // as graph tasks, while counting
};

// Record of an installed operator by name; null if it is not installed.
OpInfo* find_info(const std::string& name);
OpInfo* add_info(const c10::OperatorHandle& op, bool native, c10::DispatchKey key = c10::DispatchKey::CPU);
void for_each_info(const std::function<void(OpInfo&)>& visit);

}  // namespace ascend_sim
