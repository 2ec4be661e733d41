#include "op_info.h"

#include <ATen/core/stack.h>

#include <map>
#include <mutex>
#include <unordered_set>

namespace ascend_sim {
namespace {

std::mutex registry_lock;
std::map<std::string, std::unique_ptr<OpInfo>>& registry() {
  static std::map<std::string, std::unique_ptr<OpInfo>> infos;
  return infos;
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// The host needs a device value (or a shape that depends on one) before these return.
const std::unordered_set<std::string> kSynchronizing = {
    "aten::_local_scalar_dense", "aten::item",    "aten::nonzero",   "aten::masked_select", "aten::_unique",
    "aten::_unique2",            "aten::equal",   "aten::bincount",  "aten::unique_dim",    "aten::unique_consecutive",
    "aten::unique_dim_consecutive", "aten::is_nonzero", "aten::argwhere", "aten::nonzero_numpy",
};

// Work that dominates a decode step; the rest is cheap enough to run even when compute is made free.
const std::unordered_set<std::string> kHeavy = {
    "aten::mm",     "aten::matmul", "aten::addmm",        "aten::bmm",          "aten::linear",  "aten::embedding",
    "aten::argmax", "aten::sort",   "aten::index_select", "aten::_log_softmax", "aten::_softmax",
};

// Operators that write arguments in place and return them, though their schemas do not say so: per result the argument.
const std::map<std::string, std::vector<int>> kReturnsArguments = {
    {"npu::npu_kv_rmsnorm_rope_cache", {5, 6, -1, -1}},
    {"npu::npu_mla_prolog", {-1, -1, 10, 11}},
    {"npu::npu_mla_prolog_v2", {-1, -1, 10, 11, -1}},
};

}  // namespace

OpInfo::OpInfo(const c10::OperatorHandle& op, bool is_native) : native(is_native) {
  const auto& schema = op.schema();
  const auto& base = schema.name();
  name = schema.overload_name().empty() ? base : base + "." + schema.overload_name();
  arguments = static_cast<int>(schema.arguments().size());
  for (int i = 0; i < arguments; i++) {
    const auto& argument = schema.arguments()[i].name();
    argument_names.push_back(argument);
    if (argument == "pin_memory") pin_memory = i;
    if (argument == "generator") generator = i;
    if (argument == "process_group") process_group = i;
    if (argument == "non_blocking") non_blocking = i;
    const auto* alias = schema.arguments()[i].alias_info();
    writes.push_back(alias && alias->isWrite());
  }
  collective = starts_with(base, "c10d::");
  shapes_only = ends_with(base, "_like") || ends_with(base, "_infer_output") || ends_with(base, "_get_max_workspace") ||
                ends_with(base, "_get_workspace");
  copies = base == "aten::copy_" || base == "aten::_to_copy" || base == "aten::_copy_from";
  indexes = starts_with(base, "aten::index") || starts_with(base, "aten::_index") || starts_with(base, "aten::_unsafe_index");
  mixes_devices = copies || indexes || base == "aten::set_" || base == "aten::repeat_interleave" ||
                  !(starts_with(base, "aten::") || starts_with(base, "npu::") || starts_with(base, "atb::"));
  synchronizes = kSynchronizing.count(base) || (base == "aten::repeat_interleave" && schema.overload_name() == "Tensor");
  draws_implicitly = false;
  if (generator < 0)
    for (auto tag : op.getTags()) draws_implicitly |= tag == at::Tag::nondeterministic_seeded;
  returns_written = !collective;
  bool tensors_only = true;
  for (const auto& result : schema.returns()) {
    int position = -1;
    const auto* alias = result.alias_info();
    if (alias && alias->isWrite())
      for (int i = 0; i < arguments; i++) {
        const auto* other = schema.arguments()[i].alias_info();
        if (other && other->isWrite() && other->beforeSets() == alias->beforeSets()) position = i;
      }
    written.push_back(position);
    returns_written &= position >= 0;
    tensors_only &= result.type()->kind() == c10::TypeKind::TensorType;
  }
  casts_format = base == "npu::npu_format_cast" || base == "npu::npu_format_cast_" || base == "npu::_npu_format_cast";
  if (auto known = kReturnsArguments.find(base); known != kReturnsArguments.end()) {
    written = known->second;
    for (int position : written)
      if (position >= 0) writes[position] = true;
  }
  makes_fresh = starts_with(base, "aten::") && !written.empty() && written[0] < 0 &&
                schema.returns()[0].type()->kind() == c10::TypeKind::TensorType;
  // The vendor's `.out` overloads take the list of results without alias marks.
  if (schema.overload_name() == "out" && arguments > 0) {
    const auto& last = schema.arguments()[arguments - 1];
    if (last.name() == "out" && last.type()->kind() == c10::TypeKind::ListType && !last.alias_info()) {
      out_list = arguments - 1;
      writes[out_list] = true;
    }
  }
  for (const bool written_argument : writes) writes_any |= written_argument;
  free_compute = tensors_only && !schema.returns().empty() && (kHeavy.count(base) || (!starts_with(base, "aten::") && !collective));
}

OpInfo* find_info(const std::string& name) {
  std::lock_guard<std::mutex> guard(registry_lock);
  auto it = registry().find(name);
  return it == registry().end() ? nullptr : it->second.get();
}

bool OpInfo::may_be_host(int index) const {
  // Asked when a call needs it, because reading the table of limits at start-up would cost everyone.
  if (key != kReference) return false;
  static const auto ask = c10::Dispatcher::singleton().findSchemaOrThrow("ascend_sim::may_be_host", "");
  torch::jit::Stack stack{name, argument_names[index]};
  ask.callBoxed(&stack);
  return stack[0].toBool();
}

OpInfo* add_info(const c10::OperatorHandle& op, bool native, c10::DispatchKey key) {
  auto info = std::make_unique<OpInfo>(op, native);
  info->key = key;
  std::lock_guard<std::mutex> guard(registry_lock);
  auto& slot = registry()[info->name];
  if (!slot) slot = std::move(info);
  return slot.get();
}

void for_each_info(const std::function<void(OpInfo&)>& visit) {
  std::lock_guard<std::mutex> guard(registry_lock);
  for (auto& entry : registry()) visit(*entry.second);
}

}  // namespace ascend_sim
