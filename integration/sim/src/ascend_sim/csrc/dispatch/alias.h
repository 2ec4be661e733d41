// NPU tensors seen as CPU tensors: device memory is host memory, so a CPU tensor over the same bytes is enough for a
// CPU kernel to read and write them.
#pragma once

#include <ATen/ATen.h>

namespace ascend_sim {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;

inline bool is_npu(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kNpu; }

// A CPU tensor over the bytes of an NPU tensor. With `owning` it keeps the memory alive (work that outlives the call);
// without, the caller does.
at::Tensor alias(const at::Tensor& tensor, bool owning);

// A new NPU tensor of the same shape, dtype and layout, with the values of `result`.
at::Tensor to_device(const at::Tensor& result, c10::Device device);

// Copies values between CPU tensors of equal shape; layouts may differ.
void copy_values(const at::Tensor& destination, const at::Tensor& source);

}  // namespace ascend_sim
