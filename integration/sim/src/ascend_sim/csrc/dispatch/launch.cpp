#include "launch.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include "alias.h"
#include "collectives.h"
#include "conversion.h"
#include "format.h"
#include "free_compute.h"
#include "fresh.h"
#include "install.h"
#include "order.h"
#include "random.h"
#include "task.h"
#include "threads.h"
#include "trace.h"
#include "transfers.h"
#include "torch_npu/csrc/core/npu/NPUFunctions.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace ascend_sim {
namespace {

using torch::jit::Stack;

// The stream a call runs on: the current stream of the first NPU among its arguments.
void* stream_of(const Stack& stack, size_t base) {
  std::optional<c10::DeviceIndex> index;
  for (size_t i = base; i < stack.size() && !index; i++) {
    if (stack[i].isDevice() && stack[i].toDevice().type() == kNpu && stack[i].toDevice().has_index()) index = stack[i].toDevice().index();
    if (!stack[i].isTensor() && !stack[i].isList()) continue;
    std::vector<at::Tensor> tensors;
    collect_tensors(stack[i], tensors);
    for (const auto& tensor : tensors)
      if (!index && is_npu(tensor)) index = tensor.device().index();
  }
  return c10_npu::getCurrentNPUStream(index.value_or(-1)).stream(/*need_empty=*/false);
}

// A copy between two NPUs orders the current streams of both.
void* other_stream_of(const OpInfo& info, const Stack& stack, size_t base, void* stream) {
  for (int i = 0; info.copies && i < info.arguments; i++) {
    if (!stack[base + i].isTensor() || !is_npu(stack[base + i].toTensor())) continue;
    void* other = c10_npu::getCurrentNPUStream(stack[base + i].toTensor().device().index()).stream(/*need_empty=*/false);
    if (other != stream) return other;
  }
  return nullptr;
}

}  // namespace

void Launch::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  if (C10_LIKELY(!Trace::on())) return launch(op, stack);
  const size_t base = stack->size() - info_->arguments;
  const auto tensors = Trace::describe(stack->data() + base, info_->arguments);
  void* stream = stream_of(*stack, base);
  static constexpr const char* kCategories[] = {"op", "captured", "update", "submitted"};  // by sim_mode
  const char* category = sim_attention() ? kCategories[sim_stream_mode(stream)] : kCategories[SIM_RUNS];
  const auto begin = sim_now_ns();
  launch(op, stack);
  Trace::call(*info_, stream, tensors, category, begin);
}

void Launch::launch(const c10::OperatorHandle& op, Stack* stack) {
  if (C10_UNLIKELY(adoptions_pending())) flush_adoptions();
  if (C10_UNLIKELY(info_->casts_format) && casts_nothing(*info_, stack)) return;
  if (C10_LIKELY(sim_attention() == 0)) return run(op, stack);

  const size_t base = stack->size() - info_->arguments;
  void* stream = stream_of(*stack, base);
  const sim_mode mode = sim_stream_mode(stream);
  if (mode == SIM_RUNS) return checking_order() ? run_checked(op, stack, stream) : run(op, stack);
  if (needs_host(*info_, *stack, base)) {
    TORCH_CHECK(mode == SIM_QUEUES, info_->name, ": a synchronizing operation is not permitted while ",
                mode == SIM_CAPTURES ? "the stream is capturing" : "a graph task is updated");
    check_runtime(sim_stream_drain(stream, info_->name.c_str()), info_->name);
    return checking_order() ? run_checked(op, stack, stream) : run(op, stack);
  }
  TORCH_CHECK(mode == SIM_QUEUES || !copies_pageable(*info_, stack->data() + base), info_->name,
              ": a copy of pageable host memory is not permitted while ",
              mode == SIM_CAPTURES ? "the stream is capturing" : "a graph task is updated",
              "; use a tensor in pinned memory (torch.empty(..., pin_memory=True)) that lives as long as the graph");
  if (mode == SIM_QUEUES && sim_order() == SIM_ORDER_RANDOM && !can_be_queued(op, *info_, *stack, base)) {
    check_runtime(sim_stream_drain(stream, info_->name.c_str()), info_->name);
    return run(op, stack);
  }
  if (mode == SIM_QUEUES) info_->launches.fetch_add(1, std::memory_order_relaxed);
  submit_task(op, *info_, mode, stream, stack);
}

void Launch::run_checked(const c10::OperatorHandle& op, Stack* stack, void* stream) {
  const OpInfo& info = *info_;
  const size_t base = stack->size() - info.arguments;
  const Stack arguments(stack->begin() + static_cast<ptrdiff_t>(base), stack->end());
  // Operators that torch_npu has no kernel for run on the CPU.
  const bool host_waits = !info.native || needs_host(info, *stack, base) || copies_pageable(info, arguments.data());
  if (info.collective) {
    run_collective_checked(op, info, stack, stream, [&] { run(op, stack); });
    return;
  }
  WorkScope scope(sim_order_enter(stream));
  void* other = other_stream_of(info, *stack, base, stream);
  if (other) sim_order_join_streams(stream, other);
  before_transfer(info, arguments.data());
  note_arguments(info, arguments.data());
  run(op, stack);
  note_results(info, arguments.data(), c10::ArrayRef<c10::IValue>(*stack).slice(base));
  if (other) sim_order_join_streams(stream, other);
  if (!host_waits) {
    after_transfer(info, arguments.data());
  } else {
    sim_order_host_waits(stream);
    check_runtime(settle_transfers(), info.name);
  }
}

void Launch::run(const c10::OperatorHandle& op, Stack* stack) {
  const OpInfo& info = *info_;
  info_->launches.fetch_add(1, std::memory_order_relaxed);
  const size_t base = stack->size() - info.arguments;

  const bool free = C10_UNLIKELY(FreeCompute::enabled()) && info.free_compute;
  uint64_t signature = 0;
  std::vector<c10::TensorImpl*> impls;
  if (free) {
    if (FreeCompute::replace(info, stack, &signature)) return;
    for (int i = 0; i < info.arguments; i++) {
      const auto& value = (*stack)[base + i];
      impls.push_back(value.isTensor() ? value.toTensor().unsafeGetTensorImpl() : nullptr);
    }
  }

  ComputeThread::enter();
  at::AutoDispatchBelowADInplaceOrView below;
  Conversion conversion(info, /*owning=*/info.collective);
  if (C10_UNLIKELY(info.casts_format)) conversion.allocate_as(target_format(info, *stack, base));
  std::optional<Draw> draw;
  for (int i = 0; i < info.arguments; i++) conversion.convert((*stack)[base + i], i);
  conversion.check_devices();
  if (info.pin_memory >= 0 && !conversion.to_cpu()) (*stack)[base + info.pin_memory] = c10::IValue();
  if (C10_UNLIKELY(info.generator >= 0 || info.draws_implicitly)) {
    at::Generator given;
    if (info.generator >= 0 && (*stack)[base + info.generator].isGenerator()) given = (*stack)[base + info.generator].toGenerator();
    if (!given.defined() || given.device().type() == kNpu) draw.emplace(given, conversion.npu_index());
    if (draw && info.generator >= 0) (*stack)[base + info.generator] = draw->cpu_generator();
  }
  const auto device = static_cast<c10::DeviceIndex>(info.makes_fresh ? conversion.npu_index() : 0);
  FreshMemory memory(device, info.makes_fresh && !conversion.to_cpu() && conversion.device() && device == c10_npu::current_device());
  if (info.collective) {
    run_collective(op, info, stack);
  } else if (draw && info.draws_implicitly) {
    DefaultGeneratorScope scope(*draw);
    op.redispatchBoxed(c10::DispatchKeySet(info.key), stack);
  } else {
    op.redispatchBoxed(c10::DispatchKeySet(info.key), stack);
  }
  if (info.writes_any) conversion.restore();
  for (size_t i = base; i < stack->size(); i++) (*stack)[i] = conversion.result((*stack)[i]);
  if (free) FreeCompute::remember(info, signature, impls, *stack, base);
}

void Missing::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.operator_name().name, ": the simulated NPU has no reference for this operator. ",
                              "`python -m ascend_sim ops` lists those it has; add one under ascend_sim/references.");
}

}  // namespace ascend_sim
