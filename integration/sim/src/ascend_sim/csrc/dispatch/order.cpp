#include "order.h"

#include <algorithm>

#include "alias.h"
#include "conversion.h"
#include "task.h"

namespace ascend_sim {
namespace {

void note(const OpInfo& info, const at::Tensor& tensor, bool writes, bool fresh = false) {
  if (!tensor.defined() || tensor.numel() == 0 || !tensor.has_storage() || !tensor.storage().data()) return;
  if (!is_npu(tensor) && !is_alias(tensor) && !is_pinned_host(tensor)) return;
  sim_access access{};
  access.storage = tensor.storage().data();
  access.storage_size = tensor.storage().nbytes();
  access.item_size = tensor.element_size();
  access.address = static_cast<const char*>(access.storage) + tensor.storage_offset() * static_cast<int64_t>(access.item_size);
  access.dims = static_cast<int>(tensor.dim());
  access.sizes = tensor.sizes().data();
  access.strides = tensor.strides().data();
  access.type = type_name(tensor.scalar_type());
  access.writes = writes;
  access.fresh = fresh;
  TORCH_CHECK(sim_order_use(&access, info.name.c_str()) == 0, sim_message());
}

}  // namespace

const char* type_name(c10::ScalarType type) { return c10::getDtypeNames(type).first.data(); }  // literals

bool is_pinned_host(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.has_storage() && tensor.storage().data() &&
         sim_is_pinned(tensor.storage().data());
}

bool copies_pageable(const OpInfo& info, const c10::IValue* arguments) {
  for (int i = 0; info.copies && i < info.arguments; i++) {
    if (!arguments[i].isTensor()) continue;
    const auto& tensor = arguments[i].toTensor();
    if (tensor.defined() && tensor.device().is_cpu() && !is_alias(tensor) && !is_pinned_host(tensor)) return true;
  }
  return false;
}

void note_arguments(const OpInfo& info, const c10::IValue* arguments) {
  if (info.shapes_only) return;
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < info.arguments; i++) {
    if (!arguments[i].isTensor() && !arguments[i].isList()) continue;
    tensors.clear();
    collect_tensors(arguments[i], tensors);
    for (const auto& tensor : tensors) note(info, tensor, info.writes[i]);
  }
}

void note_fresh(const OpInfo& info, const at::Tensor& tensor) { note(info, tensor, /*writes=*/true, /*fresh=*/true); }

void note_results(const OpInfo& info, const c10::IValue* arguments, c10::ArrayRef<c10::IValue> results) {
  std::vector<at::Tensor> given, made;
  for (int i = 0; i < info.arguments; i++) collect_tensors(arguments[i], given);
  for (size_t i = 0; i < results.size() && i < info.written.size(); i++)
    if (info.written[i] < 0) collect_tensors(results[i], made);
  for (const auto& tensor : made) {
    const auto shares = [&](const at::Tensor& other) {
      return tensor.defined() && other.defined() && tensor.has_storage() && other.has_storage() &&
             tensor.storage().data() == other.storage().data();
    };
    if (std::none_of(given.begin(), given.end(), shares)) note(info, tensor, /*writes=*/true, /*fresh=*/true);
  }
}

}  // namespace ascend_sim
