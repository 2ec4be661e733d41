// NPU tensors seen as CPU tensors: device memory is host memory, so a CPU tensor over the same bytes is enough for a
// CPU kernel to read and write them.
#pragma once

#include <ATen/ATen.h>

namespace ascend_sim {

constexpr int64_t kFormatNd = 2;

constexpr auto kNpu = c10::DeviceType::PrivateUse1;

inline bool is_npu(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kNpu; }

// A CPU tensor over the bytes of an NPU tensor. With `owning` it keeps the memory alive (work that outlives the call);
// without, the caller does.
at::Tensor alias(const at::Tensor& tensor, bool owning);

// A CPU tensor over the bytes of another CPU tensor, without keeping them alive. It is no alias.
at::Tensor borrow(const at::Tensor& tensor);

// Whether a CPU tensor is an alias, or a view of one.
bool is_alias(const at::Tensor& tensor);

// The storage format of an NPU tensor, or of what a CPU tensor is an alias of; ND for other CPU tensors.
int64_t format_of(const at::Tensor& tensor);

// A new NPU tensor of the same shape, dtype and strides, in a storage format.
at::Tensor allocate(const at::Tensor& like, c10::Device device, int64_t format);

// Copies values between CPU tensors of equal shape; layouts may differ.
void copy_values(const at::Tensor& destination, const at::Tensor& source);

}  // namespace ascend_sim
