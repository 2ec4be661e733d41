// Fresh results without a copy: while a CPU kernel runs, its first allocation, as a rule that of its result, is served by
// the NPU's allocator. The result then becomes an NPU tensor over the same memory.
#pragma once

#include <ATen/ATen.h>

namespace ascend_sim {

// Puts the allocator that does it before torch's own for CPU memory.
void install_fresh_memory();

class FreshMemory {
 public:
  // Serves the first allocation of this thread from `device`, which must be the current one; nothing while it has no
  // tensor yet (torch_npu then still has to set it up) or where `wanted` is false.
  FreshMemory(c10::DeviceIndex device, bool wanted);
  ~FreshMemory();
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;

  // The NPU tensor over the memory of a dense CPU tensor that was served; undefined if it was not.
  static at::Tensor adopt(const at::Tensor& result);

 private:
  void* outer_;
  bool outer_armed_;
};

// An uninitialised ND tensor of the current device, without the way through the dispatcher.
at::Tensor empty_on_npu(at::IntArrayRef sizes, at::IntArrayRef strides, caffe2::TypeMeta dtype, c10::DeviceIndex device);

}  // namespace ascend_sim
