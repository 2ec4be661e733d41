#include "install.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "fresh.h"
#include "launch.h"

namespace ascend_sim {
namespace {

using c10::DispatchKey;

// torch_npu's own: allocation, views and storage, which need no compute.
const std::unordered_set<std::string> kNative = {
    "aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided",
    "aten::as_strided", "aten::as_strided_", "aten::view", "aten::_reshape_alias", "aten::unfold", "aten::view_as_real",
    "aten::view_as_complex", "aten::set_", "aten::resize_", "aten::resize_as_", "aten::record_stream", "aten::is_pinned",
    "aten::_pin_memory", "aten::pin_memory", "aten::is_set_to", "aten::_has_compatible_shallow_copy_type", "aten::data",
    "aten::lift", "aten::lift_fresh", "aten::detach", "aten::detach_", "aten::alias", "aten::requires_grad_",
    "aten::_to_copy", "aten::_unsafe_view",
};

// npu:: operators that torch_npu implements on the host or by calling others; everything else computes on the device.
const std::unordered_set<std::string> kHostOperators = {
    "npu::npu_change_data_ptr", "npu::get_npu_format", "npu::get_storage_size", "npu::empty_with_format",
    "npu::unsafe_empty_with_format", "npu::empty_with_swapped_memory", "npu::_npu_storage_resize", "npu::copy_memory_",
    "npu::npu_lazy_init", "npu::_has_compatible_shallow_copy_type", "npu::super_kernel_scope_begin",
    "npu::super_kernel_scope_end", "npu::print_npugraph_tensor", "npu::save_npugraph_tensor",
};

// Operators whose autograd kernel in torch_npu computes by itself, through the ACL compiler, instead of redispatching;
// their results carry no gradient, so the kernel is passed over.
constexpr const char* kComputedByAutograd[] = {"one_hot", "max.out", "min.out", "nanmean.out", "log_sigmoid.out", "multilabel_margin_loss.out"};

std::mutex install_lock;
std::vector<std::unique_ptr<torch::Library>> libraries;
std::unordered_map<std::string, torch::Library*> by_namespace;
std::unordered_set<std::string> installed;
std::unordered_set<std::string> adopted_namespaces;
std::vector<c10::OperatorName> queued;
std::atomic<bool> pending{false};

torch::Library& library(const std::string& name) {
  auto*& slot = by_namespace[name];
  if (!slot) {
    libraries.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, name, DispatchKey::PrivateUse1, __FILE__, __LINE__));
    slot = libraries.back().get();
  }
  return *slot;
}

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

struct SilentWarnings : c10::WarningHandler {
  void process(const c10::Warning&) override {}  // "overriding a previously registered kernel": that is the purpose
};

template <class Kernel>
void put(const c10::OperatorHandle& op, std::unique_ptr<Kernel> kernel) {
  const auto full = full_name(op.operator_name());
  if (!installed.insert(full).second) return;
  const auto colons = full.find("::");
  library(full.substr(0, colons)).impl(full.substr(colons + 2).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
}

bool returns_view(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns())
    if (result.alias_info() && !result.alias_info()->isWrite()) return true;
  return false;
}

// aten operators: those torch_npu has a kernel for, and those only the CPU has (hardware falls back to it).
bool answers(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name().name;
  if (!op.hasSchema() || kNative.count(name) || returns_view(op.schema())) return false;
  const bool cpu = op.hasKernelForDispatchKey(DispatchKey::CPU);
  const bool npu = op.hasKernelForDispatchKey(DispatchKey::PrivateUse1);
  if (name.rfind("c10d::", 0) == 0) return cpu;
  if (name.rfind("aten::", 0) != 0) return false;
  const bool composite = op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
                         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
                         op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
  return npu ? cpu || composite : cpu && !composite;
}

// A composite operator runs as the operators it is made of; one with a kernel for the device runs that.
bool adoptable(const c10::OperatorHandle& op) {
  return !returns_view(op.schema()) && !op.hasKernelForDispatchKey(DispatchKey::PrivateUse1) &&
         !op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

std::string namespace_of(const c10::OperatorName& name) { return name.name.substr(0, name.name.find("::")); }

// Called under the dispatcher's lock: only note the name. An operator's kernels are registered after its schema.
class Listener : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& op) override {
    if (!adopted_namespaces.count(namespace_of(op.operator_name()))) return;
    std::lock_guard<std::mutex> guard(install_lock);
    queued.push_back(op.operator_name());
    pending = true;
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}
};

}  // namespace

bool adoptions_pending() { return pending.load(std::memory_order_relaxed); }

void flush_adoptions() {
  std::vector<c10::OperatorName> names;
  {
    std::lock_guard<std::mutex> guard(install_lock);
    names.swap(queued);
    pending = false;
  }
  std::vector<c10::OperatorName> later;
  for (const auto& name : names) {
    auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op) continue;
    if (!op->hasSchema()) later.push_back(name);
    else if (adoptable(*op)) put(*op, std::make_unique<Launch>(add_info(*op, true)));
  }
  std::lock_guard<std::mutex> guard(install_lock);
  queued.insert(queued.end(), later.begin(), later.end());
}

int64_t install(const std::vector<std::string>& references, const std::vector<std::string>& namespaces) {
  SilentWarnings silent;
  c10::WarningUtils::WarningHandlerGuard guard(&silent);
  auto& dispatcher = c10::Dispatcher::singleton();
  const std::unordered_set<std::string> with_reference(references.begin(), references.end());
  std::unordered_set<std::string> unknown = with_reference;
  for (const auto& name : dispatcher.getAllOpNames()) {
    auto op = dispatcher.findSchema(name);
    if (!op) continue;
    const auto full = full_name(name);
    const auto space = namespace_of(name);
    unknown.erase(full);
    if (with_reference.count(full)) put(*op, std::make_unique<Launch>(add_info(*op, true, kReference)));
    else if (answers(*op))
      put(*op, std::make_unique<Launch>(add_info(*op, op->hasKernelForDispatchKey(DispatchKey::PrivateUse1),
                                                 op->hasKernelForDispatchKey(kOwn) ? kOwn : DispatchKey::CPU)));
    else if ((space == "npu" || space == "atb") && !kHostOperators.count(name.name) && !returns_view(op->schema()) &&
             !op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      put(*op, std::make_unique<Missing>());
  }
  TORCH_CHECK(unknown.empty(), "ascend_sim.references names an operator that torch_npu does not have: ",
              unknown.empty() ? "" : *unknown.begin());
  install_fresh_memory();
  static torch::Library autograd(torch::Library::IMPL, "aten", DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  for (const auto* name : kComputedByAutograd) autograd.impl(name, torch::CppFunction::makeFallthrough());
  adopted_namespaces.insert(namespaces.begin(), namespaces.end());
  static auto registration = dispatcher.addRegistrationListener(std::make_unique<Listener>());
  flush_adoptions();
  return static_cast<int64_t>(installed.size());
}

}  // namespace ascend_sim
