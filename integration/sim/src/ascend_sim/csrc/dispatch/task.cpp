#include "task.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <algorithm>
#include <cstdlib>

#include "alias.h"
#include "collectives.h"
#include "conversion.h"
#include "format.h"
#include "guard.h"
#include "order.h"
#include "random.h"
#include "threads.h"
#include "trace.h"
#include "transfers.h"

namespace ascend_sim {
namespace {

using torch::jit::Stack;

struct Task {
  c10::OperatorHandle op;
  const OpInfo* info;
  Stack arguments;                  // on CPU
  std::vector<at::Tensor> fresh;    // where results go, as CPU aliases; undefined where a result is an argument
  std::optional<Draw> draw;
  std::optional<MemoryGuards> memory;  // of a captured task

  void run();
};

void Task::run() {
  ComputeThread::enter();
  at::AutoDispatchBelowADInplaceOrView below;
  c10::InferenceMode inference(true);
  if (checking_order()) {
    before_transfer(*info, arguments.data());
    note_arguments(*info, arguments.data());
    for (const auto& result : fresh) note_fresh(*info, result);
  }
  Stack stack = arguments;
  if (draw && info->generator >= 0) stack[info->generator] = draw->cpu_generator();
  if (info->collective) {
    run_collective(op, *info, &stack);
    wait_collective(stack);
    return;
  }
  {
    std::optional<DefaultGeneratorScope> scope;
    if (draw && info->draws_implicitly) scope.emplace(*draw);
    op.redispatchBoxed(c10::DispatchKeySet(info->key), &stack);
  }
  std::vector<at::Tensor> results;
  for (const auto& value : stack) collect_tensors(value, results);
  for (size_t i = 0; i < results.size() && i < fresh.size(); i++)
    if (fresh[i].defined()) copy_values(fresh[i], results[i]);
  if (checking_order()) after_transfer(*info, arguments.data());
}

int fail(const Task& task, const char* what, const std::string& problem) {
  sim_report((task.info->name + what + problem).c_str());
  return 507011;  // ACL_ERROR_RT_MODEL_EXECUTE
}

int run_task(void* context) {
  auto* task = static_cast<Task*>(context);
  std::string problem;  // the caller is C: the text travels through the runtime's error message
  try {
    task->run();
    return 0;
  } catch (const c10::Error& error) {
    problem = error.what_without_backtrace();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return fail(*task, " failed on the simulated device: ", problem);
}

int may_replay(void* context, uint64_t launch) {
  auto* task = static_cast<Task*>(context);
  const auto problem = task->memory->problem(launch);
  return problem.empty() ? 0 : fail(*task, ": ", problem);
}

// Hardware takes the values of CPU tensors when an operator is submitted.
at::Tensor own_host_values(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && !is_alias(tensor) ? tensor.clone() : tensor;
}

// A captured copy uses pinned host memory by its address and does not keep it alive.
at::Tensor borrow_host(const at::Tensor& tensor) { return is_pinned_host(tensor) && !is_alias(tensor) ? borrow(tensor) : tensor; }

// ---- shapes of results that are not computed yet ----

at::Tensor meta_like(const at::Tensor& tensor) {
  return tensor.defined() && (is_npu(tensor) || tensor.dim() > 0)
             ? at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta))
             : tensor;
}

at::Tensor zeros_like_on_cpu(const at::Tensor& tensor) {
  if (!is_npu(tensor)) return tensor;
  // calloc gives pages that cost nothing until touched: the storage may be a whole KV cache.
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  void* memory = std::calloc(1, std::max<int64_t>(bytes, 1));
  TORCH_CHECK(memory, "no host memory for a stand-in of ", bytes, " bytes");
  auto storage = at::from_blob(memory, {bytes / static_cast<int64_t>(tensor.element_size())}, [](void* pointer) { std::free(pointer); },
                               tensor.options().device(c10::kCPU));
  return storage.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

bool has_meta(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::Meta) || op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// Runs the operator on stand-ins: Meta tensors, or zeros on the CPU where it has no Meta kernel.
Stack shapes_of_results(const c10::OperatorHandle& op, const OpInfo& info, const Stack& originals) {
  const bool meta = has_meta(op);
  const auto device = meta ? c10::Device(c10::kMeta) : c10::Device(c10::kCPU);
  Stack stack;
  for (const auto& value : originals) {
    if (value.isDevice()) stack.emplace_back(device);
    else if (value.isGenerator()) stack.emplace_back();
    else stack.push_back(map_tensors(value, meta ? meta_like : zeros_like_on_cpu));
  }
  if (info.pin_memory >= 0) stack[info.pin_memory] = c10::IValue();
  at::AutoDispatchBelowADInplaceOrView below;
  op.redispatchBoxed(c10::DispatchKeySet(meta ? c10::DispatchKey::Meta : info.key), &stack);
  return stack;
}

// What the hardware refuses is refused when an operator is submitted, not when it runs. The table of limits is Python's.
void check_limits(const OpInfo& info, const Stack& arguments, bool captures) {
  static const auto check = c10::Dispatcher::singleton().findSchemaOrThrow("ascend_sim::check_limits", "");
  Stack stack{info.name, c10::ivalue::Tuple::create(arguments), captures};
  check.callBoxed(&stack);
}

bool is_mask(const c10::IValue& value) {
  std::vector<at::Tensor> tensors;
  collect_tensors(value, tensors);
  for (size_t i = 0; i < tensors.size(); i++)
    if (tensors[i].defined() && (tensors[i].scalar_type() == at::kBool || tensors[i].scalar_type() == at::kByte)) return true;
  return false;
}

}  // namespace

bool needs_host(const OpInfo& info, const Stack& stack, size_t base) {
  if (info.synchronizes) return true;
  if (info.indexes)
    for (int i = 1; i < info.arguments; i++)
      if (stack[base + i].isList() && is_mask(stack[base + i])) return true;
  if (info.copies && info.non_blocking >= 0 && !stack[base + info.non_blocking].toBool()) {
    bool cpu = false, npu = false;
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < info.arguments; i++) collect_tensors(stack[base + i], tensors);
    for (const auto& tensor : tensors) (is_npu(tensor) ? npu : cpu) |= tensor.defined();
    return cpu && npu;
  }
  return false;
}

bool can_be_queued(const c10::OperatorHandle& op, const OpInfo& info, const Stack& stack, size_t base) {
  if (!info.native && !info.collective) return false;
  if (!info.collective && !info.returns_written && info.out_list < 0 && !has_meta(op)) return false;
  for (int i = 0; i < info.arguments; i++) {
    std::vector<at::Tensor> tensors;
    if (info.writes[i]) collect_tensors(stack[base + i], tensors);
    for (const auto& tensor : tensors)
      if (tensor.defined() && tensor.numel() == 0) return false;
  }
  return !copies_pageable(info, stack.data() + base);
}

std::string describe_task(const sim_work& work) {
  if (work.run != run_task) return "";
  const auto& arguments = static_cast<const Task*>(work.context)->arguments;
  return Trace::describe(arguments.data(), arguments.size());
}

void check_runtime(int error, const std::string& what) { TORCH_CHECK(error == 0, what, ": ", sim_message()); }

void submit_task(const c10::OperatorHandle& op, const OpInfo& info, sim_mode mode, void* stream, Stack* stack) {
  const size_t base = stack->size() - info.arguments;
  TORCH_CHECK(mode != SIM_CAPTURES || info.native, info.name,
              ": torch_npu has no kernel for this operator; on an NPU it would fall back to the CPU, which a capture does not permit");
  // In random order memory is the program's business, as on hardware: the allocator may hand it on while work is queued.
  const bool owning = (mode == SIM_QUEUES && sim_order() != SIM_ORDER_RANDOM) || info.collective;
  Conversion conversion(info, owning);
  if (info.casts_format) conversion.allocate_as(target_format(info, *stack, base));
  auto task = std::make_unique<Task>(Task{op, &info, {}, {}, std::nullopt});
  Stack originals(stack->begin() + static_cast<ptrdiff_t>(base), stack->end());
  for (int i = 0; i < info.arguments; i++) {
    auto argument = originals[i].isGenerator() ? c10::IValue() : conversion.argument(originals[i], i);
    if (!info.copies) argument = map_tensors(argument, own_host_values);
    else if (mode == SIM_CAPTURES) argument = map_tensors(argument, borrow_host);
    task->arguments.push_back(std::move(argument));
  }
  conversion.check_devices();
  if (info.key == kReference) check_limits(info, task->arguments, mode == SIM_CAPTURES);
  if (info.pin_memory >= 0) task->arguments[info.pin_memory] = c10::IValue();
  if (info.generator >= 0 || info.draws_implicitly) {
    const auto given = info.generator >= 0 ? originals[info.generator] : c10::IValue();
    if (!given.isGenerator() || given.toGenerator().device().type() == kNpu)
      task->draw.emplace(given.isGenerator() ? given.toGenerator() : at::Generator(), conversion.npu_index());
    else
      task->arguments[info.generator] = given;
  }

  Stack results;
  const auto out = info.out_list >= 0 ? originals[info.out_list].toTensorList() : c10::List<at::Tensor>();
  if (info.collective) {
    results = deferred_collective_results(info, originals);
  } else if (out.size() == info.written.size()) {
    for (size_t i = 0; i < out.size(); i++) results.emplace_back(out.get(i));
    task->fresh.resize(out.size());
  } else {
    Stack shapes;
    if (!info.returns_written) shapes = shapes_of_results(op, info, originals);
    for (size_t i = 0; i < info.written.size(); i++) {
      if (info.written[i] >= 0) {
        results.push_back(originals[info.written[i]]);
        std::vector<at::Tensor> written;
        collect_tensors(results.back(), written);
        task->fresh.resize(task->fresh.size() + written.size());
        continue;
      }
      results.push_back(map_tensors(shapes[i], [&](const at::Tensor& shape) {
        at::Tensor tensor;
        if (shape.defined() && !conversion.to_cpu()) tensor = conversion.allocate(shape);
        task->fresh.push_back(tensor.defined() ? alias(tensor, owning) : tensor);
        return tensor;
      }));
    }
  }
  if (mode == SIM_CAPTURES) task->memory.emplace(info, originals);
  sim_work work{info.name.c_str(), run_task,        [](void* context) { delete static_cast<Task*>(context); },
                task.release(),    info.collective, mode == SIM_CAPTURES ? may_replay : nullptr};
  check_runtime(sim_submit(stream, work), info.name);
  stack->resize(base);
  for (auto& value : results) stack->push_back(std::move(value));
}

}  // namespace ascend_sim
