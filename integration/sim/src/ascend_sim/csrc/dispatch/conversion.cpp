#include "conversion.h"

#include "alias.h"
#include "fresh.h"
#include "torch_npu/csrc/core/npu/NPUFunctions.h"

namespace ascend_sim {

c10::IValue map_tensors(const c10::IValue& value, const TensorMap& map) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    auto list = value.toTensorList();
    c10::List<at::Tensor> mapped;
    mapped.reserve(list.size());
    for (size_t i = 0; i < list.size(); i++) mapped.push_back(map(list.get(i)));
    return mapped;
  }
  if (value.isOptionalTensorList()) {
    auto list = value.toOptionalTensorList();
    c10::List<std::optional<at::Tensor>> mapped;
    for (size_t i = 0; i < list.size(); i++) {
      std::optional<at::Tensor> item = list.get(i);
      mapped.push_back(item ? std::optional<at::Tensor>(map(*item)) : item);
    }
    return mapped;
  }
  if (value.isList() && value.toList().elementType()->kind() == c10::TypeKind::ListType) {
    auto list = value.toList();
    c10::impl::GenericList mapped(list.elementType());
    for (size_t i = 0; i < list.size(); i++) mapped.push_back(map_tensors(list.get(i), map));
    return mapped;
  }
  return value;
}

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  map_tensors(value, [&](const at::Tensor& tensor) {
    tensors.push_back(tensor);
    return tensor;
  });
}

at::Tensor Conversion::tensor(const at::Tensor& value) {
  if (!value.defined()) return value;
  if (value.device().type() != kNpu) {
    if (value.device().is_cpu() && value.dim() > 0) {
      saw_cpu_ = true;
      host_.push_back(position_);
    }
    return value;
  }
  check_strided(value);
  if (!device_) device_ = value.device();
  else if (*device_ != value.device()) other_ = value.device();
  at::Tensor converted = alias(value, owning_);
  pairs_.emplace_back(converted, value);
  return converted;
}

void Conversion::convert(c10::IValue& value, int position) {
  if (C10_LIKELY(value.isTensor())) {
    position_ = position;
    const at::Tensor& given = value.toTensor();
    if (is_npu(given)) value = tensor(given);
    else tensor(given);
  } else if (value.isDevice() || value.isList()) {
    value = argument(value, position);
  }
}

c10::IValue Conversion::argument(const c10::IValue& value, int position) {
  position_ = position;
  if (value.isTensor()) return tensor(value.toTensor());
  if (value.isDevice()) {
    explicit_ = value.toDevice();
    return explicit_->type() == kNpu ? c10::IValue(c10::Device(c10::kCPU)) : value;
  }
  if (value.isList()) return map_tensors(value, [this](const at::Tensor& item) { return tensor(item); });
  return value;
}

void Conversion::check_devices() const {
  if (!device_) return;
  TORCH_CHECK(!other_ || info_.copies, info_.name, ": expected all tensors to be on the same device, but found ", *device_, " and ",
              other_ ? other_->str() : "");
  if (C10_LIKELY(!saw_cpu_ || info_.mixes_devices)) return;
  for (int position : host_)
    TORCH_CHECK(info_.may_be_host(position), info_.name,
                ": expected all tensors to be on the same device, but found at least two devices, ", *device_,
                " and cpu! (argument ", info_.argument_names[position], ")");
}

at::Tensor Conversion::allocate(const at::Tensor& like) const {
  return ascend_sim::allocate(like, c10::Device(kNpu, static_cast<c10::DeviceIndex>(npu_index())), format_);
}

int Conversion::npu_index() const {
  auto where = explicit_ && explicit_->type() == kNpu ? explicit_ : device_;
  return where && where->has_index() ? where->index() : c10_npu::current_device();
}

void Conversion::check_strided(const at::Tensor& tensor) const {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == c10::kStrided, info_.name, ": the simulated NPU has no tensors of layout ",
                              tensor.layout());
}

void Conversion::restore() {
  for (auto& [converted, original] : pairs_) {
    if (converted.sizes() == original.sizes() && converted.strides() == original.strides() &&
        converted.storage_offset() == original.storage_offset())
      continue;
    const bool moved = converted.storage().data() != original.storage().data();  // it had to grow
    if (converted.sizes() != original.sizes()) original.resize_(converted.sizes());
    if (moved) copy_values(alias(original, false), converted);
    else original.as_strided_(converted.sizes(), converted.strides(), converted.storage_offset());
  }
}

at::Tensor Conversion::result(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  for (auto& [converted, original] : pairs_)
    if (converted.is_same(tensor)) return original;
  if (to_cpu()) return tensor;
  check_strided(tensor);
  if (tensor.has_storage() && tensor.storage().nbytes()) {
    auto* bytes = tensor.storage().unsafeGetStorageImpl();
    for (auto& [converted, original] : pairs_)
      if (converted.storage().unsafeGetStorageImpl() == bytes)
        return original.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  }
  if (!device()) return tensor;  // CPU tensors only: the operator had no NPU tensor to begin with
  if (auto adopted = FreshMemory::adopt(tensor); adopted.defined()) return adopted;
  const auto fresh = allocate(tensor);
  copy_values(alias(fresh, false), tensor);
  return fresh;
}

c10::IValue Conversion::result(const c10::IValue& value) {
  return map_tensors(value, [this](const at::Tensor& tensor) { return result(tensor); });
}

}  // namespace ascend_sim
