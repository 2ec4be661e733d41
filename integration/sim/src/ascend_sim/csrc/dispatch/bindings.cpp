// The library's interface to Python: torch.ops.ascend_sim.*, used by ascend_sim's modules only.
#include <torch/library.h>

#include <unordered_map>

#include "../sim_api.h"
#include "alias.h"
#include "free_compute.h"
#include "install.h"
#include "op_info.h"
#include "order.h"
#include "trace.h"
#include "transfers.h"

namespace ascend_sim {
namespace {

std::vector<std::string> strings(const c10::List<std::string>& list) { return {list.begin(), list.end()}; }

int64_t install_operators(const c10::List<std::string>& references, const c10::List<std::string>& namespaces) {
  return install(strings(references), strings(namespaces));
}

std::vector<std::string> installed_operators() {
  std::vector<std::string> names;
  for_each_info([&](OpInfo& info) { names.push_back(info.name); });
  return names;
}

// Tasks of graphs by name; operators are found once per name because the names are shared strings.
void count_task(const char* name) {
  static thread_local std::unordered_map<const char*, OpInfo*> known;
  auto [it, added] = known.try_emplace(name, nullptr);
  if (added) it->second = find_info(name);
  if (it->second) it->second->tasks.fetch_add(1, std::memory_order_relaxed);
}

void count_tasks(bool on) { sim_observe_tasks(on ? count_task : nullptr); }

c10::Dict<std::string, int64_t> counters() {
  const auto runtime = sim_read_counters();
  int64_t launches = 0, copies = 0, fallbacks = 0;
  c10::Dict<std::string, int64_t> result;
  for_each_info([&](OpInfo& info) {
    const int64_t outside = info.launches, inside = info.tasks;
    launches += outside;
    if (info.copies) copies += outside;
    if (!info.native && !info.collective) fallbacks += outside;
    if (outside) result.insert_or_assign("op:" + info.name, outside);
    if (inside) result.insert_or_assign("graph:" + info.name, inside);
  });
  result.insert_or_assign("ops", launches);
  result.insert_or_assign("copies", copies + static_cast<int64_t>(runtime.copies));
  result.insert_or_assign("cpu_fallbacks", fallbacks);
  result.insert_or_assign("graph_tasks", static_cast<int64_t>(runtime.graph_tasks));
  result.insert_or_assign("replays", static_cast<int64_t>(runtime.replays));
  result.insert_or_assign("suspended_replays", static_cast<int64_t>(runtime.suspensions));
  result.insert_or_assign("task_updates", static_cast<int64_t>(runtime.task_updates));
  return result;
}

// "off", "check" or "random".
void set_order(const std::string& mode, int64_t seed) {
  TORCH_CHECK(mode == "off" || mode == "check" || mode == "random", "order ", mode, ": expected off, check or random");
  sim_observe_host(settle_transfers);
  abandon_transfers();
  sim_order_set(mode == "check" ? SIM_ORDER_CHECK : mode == "random" ? SIM_ORDER_RANDOM : SIM_ORDER_OFF, static_cast<uint64_t>(seed));
}

std::string order() { return checking_order() ? "check" : sim_order() == SIM_ORDER_RANDOM ? "random" : "off"; }

int64_t memory_used(int64_t device) { return static_cast<int64_t>(sim_memory_used(static_cast<int>(device))); }

int64_t storage_format(const at::Tensor& tensor) { return format_of(tensor); }

at::Tensor owning_alias(const at::Tensor& tensor) { return alias(tensor, true); }

// What torch_npu's allocator, or torch's for the CPU, takes by itself.
void allocate_and_free(c10::Device device, int64_t bytes, int64_t times) {
  auto* allocator = c10::GetAllocator(device.type());
  for (int64_t i = 0; i < times; i++) allocator->allocate(static_cast<size_t>(bytes));
}

}  // namespace

TORCH_LIBRARY(ascend_sim, library) {
  library.def("install(str[] references, str[] namespaces) -> int", install_operators);
  library.def("installed() -> str[]", installed_operators);
  library.def("counters() -> Dict(str, int)", counters);
  library.def("count_tasks(bool on) -> ()", count_tasks);
  library.def("free_compute(bool on) -> ()", FreeCompute::enable);
  library.def("set_order(str mode, int seed) -> ()", set_order);
  library.def("order() -> str", order);
  library.def("stop_progress() -> ()", sim_progress_stop);
  library.def("trace_start(str path) -> ()", Trace::start);
  library.def("trace_stop() -> int", Trace::stop);
  library.def("allocate_and_free(Device device, int bytes, int times) -> ()", allocate_and_free);
  library.def("memory_used(int device) -> int", memory_used);
  library.def("alias(Tensor tensor) -> Tensor");
  library.def("format_of(Tensor tensor) -> int");
  library.def("may_be_host(str op, str argument) -> bool");  // implemented in Python, by the table of limits, as is
  library.def("check_limits(str op, Any arguments, bool captures) -> ()");
  library.impl("format_of", c10::DispatchKey::CompositeExplicitAutograd, storage_format);
  library.impl("alias", c10::DispatchKey::CompositeExplicitAutograd, owning_alias);
}

}  // namespace ascend_sim
