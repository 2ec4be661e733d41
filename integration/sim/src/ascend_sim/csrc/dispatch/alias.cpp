#include "alias.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "fresh.h"
#include "torch_npu/csrc/core/NPUStorageImpl.h"
#include "torch_npu/csrc/core/npu/NPUFormat.h"
#include "torch_npu/csrc/core/npu/NPUFunctions.h"

namespace ascend_sim {
namespace {

// Memory of an NPU tensor, with the format it is stored in.
struct AliasStorage : c10::StorageImpl {
  using c10::StorageImpl::StorageImpl;
  int64_t format = kFormatNd;
};

void release_nothing(void*) {}
void release_storage(void* held) { delete static_cast<c10::Storage*>(held); }

}  // namespace

bool is_alias(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return false;
  const auto deleter = tensor.storage().data_ptr().get_deleter();
  return deleter == release_nothing || deleter == release_storage;
}

int64_t format_of(const at::Tensor& tensor) {
  const auto* storage = tensor.storage().unsafeGetStorageImpl();
  if (is_npu(tensor)) {
    // As torch_npu itself does: every storage on its device is of this class.
    return static_cast<int64_t>(static_cast<const torch_npu::NPUStorageImpl*>(storage)->npu_desc_.npu_format_);
  }
  const auto* known = dynamic_cast<const AliasStorage*>(storage);
  return known ? known->format : kFormatNd;
}

at::Tensor alias(const at::Tensor& tensor, bool owning) {
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  void* context = nullptr;
  if (owning) context = new c10::Storage(tensor.storage());
  // Resizable, so that out= kernels may grow it; Conversion::restore() then resizes the NPU tensor.
  c10::intrusive_ptr<c10::StorageImpl> bytes = c10::make_intrusive<AliasStorage>(
      c10::StorageImpl::use_byte_size_t(), storage->nbytes(),
      c10::DataPtr(const_cast<void*>(storage->data()), context, owning ? release_storage : release_nothing, c10::Device(c10::kCPU)),
      c10::GetCPUAllocator(),
      /*resizable=*/true);
  static_cast<AliasStorage*>(bytes.get())->format = format_of(tensor);
  auto result = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(bytes)),
                                                         c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  auto* impl = result.unsafeGetTensorImpl();
  impl->set_storage_offset(tensor.storage_offset());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  return result;
}

at::Tensor borrow(const at::Tensor& tensor) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
      c10::DataPtr(const_cast<void*>(tensor.storage().data()), c10::Device(c10::kCPU)), nullptr, /*resizable=*/false);
  auto result = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)),
                                                         c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  result.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
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

at::Tensor allocate(const at::Tensor& like, c10::Device device, int64_t format) {
  // torch_npu's cast makes the format it is asked for, whatever torch.npu.config.allow_internal_format says.
  if (C10_UNLIKELY(format != kFormatNd))
    return at_npu::native::empty_with_format(like.sizes(), like.options().device(device), format, /*keep_format=*/true);
  const bool dense = like.is_non_overlapping_and_dense();
  if (dense && device.index() == c10_npu::current_device()) return empty_on_npu(like.sizes(), like.strides(), like.dtype(), device.index());
  const auto options = like.options().device(device);
  return dense ? at::empty_strided(like.sizes(), like.strides(), options)
                                             : at::empty(like.sizes(), options);
}

}  // namespace ascend_sim
