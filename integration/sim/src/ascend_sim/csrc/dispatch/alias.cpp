#include "alias.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>

namespace ascend_sim {

at::Tensor alias(const at::Tensor& tensor, bool owning) {
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  void* context = nullptr;
  void (*release)(void*) = [](void*) {};
  if (owning) {
    context = new c10::Storage(tensor.storage());
    release = [](void* held) { delete static_cast<c10::Storage*>(held); };
  }
  // Resizable, so that out= kernels may grow it; Conversion::restore() then resizes the NPU tensor.
  auto bytes = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage->nbytes(),
      c10::DataPtr(const_cast<void*>(storage->data()), context, release, c10::Device(c10::kCPU)), c10::GetCPUAllocator(),
      /*resizable=*/true);
  auto result = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(bytes)),
                                                         c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  auto* impl = result.unsafeGetTensorImpl();
  impl->set_storage_offset(tensor.storage_offset());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  return result;
}

void copy_values(const at::Tensor& destination, const at::Tensor& source) {
  if (source.numel() == 0) return;
  if (destination.strides() == source.strides() && destination.is_non_overlapping_and_dense() &&
      destination.dtype() == source.dtype()) {
    std::memcpy(destination.data_ptr(), source.const_data_ptr(), source.nbytes());
  } else {
    destination.copy_(source);
  }
}

at::Tensor to_device(const at::Tensor& result, c10::Device device) {
  auto options = result.options().device(device);
  const bool dense = result.is_non_overlapping_and_dense();
  at::Tensor tensor = dense ? at::empty_strided(result.sizes(), result.strides(), options) : at::empty(result.sizes(), options);
  copy_values(alias(tensor, false), result);
  return tensor;
}

}  // namespace ascend_sim
