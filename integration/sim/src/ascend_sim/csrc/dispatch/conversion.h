// Arguments of one operator call as its CPU kernel sees them, and the way back for its results.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>

#include "alias.h"
#include "op_info.h"

namespace ascend_sim {

using TensorMap = std::function<at::Tensor(const at::Tensor&)>;

// Applies `map` to every tensor inside a value (lists and lists of lists included).
c10::IValue map_tensors(const c10::IValue& value, const TensorMap& map);

// The tensors inside a value, in order; undefined ones included.
void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors);

class Conversion {
 public:
  Conversion(const OpInfo& info, bool owning) : info_(info), owning_(owning) {}

  // The argument at a position for the CPU kernel.
  c10::IValue argument(const c10::IValue& value, int position);

  // The same in place.
  void convert(c10::IValue& value, int position);

  // Gives the NPU tensors the shapes and strides that the CPU kernel has given its arguments: out= kernels change them.
  void restore();

  // A result of the CPU kernel as NPU tensors: the written argument itself, a view of one, or a fresh tensor.
  c10::IValue result(const c10::IValue& value);
  at::Tensor result(const at::Tensor& tensor);

  // Throws if NPU tensors of two devices, or NPU and CPU tensors, met where they must not.
  void check_devices() const;

  // A tensor for a result on the device, shaped like `like`; in the format given to allocate_as(), else ND.
  at::Tensor allocate(const at::Tensor& like) const;
  void allocate_as(int64_t format) { format_ = format; }

  // Device of the call: explicit `device` argument, else that of the first NPU tensor.
  std::optional<c10::Device> device() const { return explicit_ ? explicit_ : device_; }
  // Index of the NPU the call runs on.
  int npu_index() const;
  bool to_cpu() const { return explicit_ && explicit_->type() != kCallDevice; }
  // Some tensor of the call is on the CPU (zero-dimensional ones do not count).
  bool saw_cpu() const { return saw_cpu_; }

 private:
  static constexpr auto kCallDevice = c10::DeviceType::PrivateUse1;
  at::Tensor tensor(const at::Tensor& value);
  void check_strided(const at::Tensor& tensor) const;

  const OpInfo& info_;
  bool owning_;
  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 8> pairs_;  // alias, original
  std::optional<c10::Device> device_, explicit_;
  std::optional<c10::Device> other_;  // an NPU other than device_
  bool saw_cpu_ = false;
  int position_ = 0;                  // of the argument being converted
  c10::SmallVector<int, 2> host_;     // positions of arguments with CPU tensors
  int64_t format_ = kFormatNd;
};

}  // namespace ascend_sim
