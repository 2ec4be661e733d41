#include "collectives.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <mutex>
#include <unordered_map>

#include "alias.h"
#include "conversion.h"
#include "order.h"
#include "torch_npu/csrc/core/npu/NPUFunctions.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"
#include "uneven.h"

namespace ascend_sim {
namespace {

class CompletedWork : public c10d::Work {
 public:
  explicit CompletedWork(std::vector<at::Tensor> result) : result_(std::move(result)) {}
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds) override { return true; }
  std::vector<at::Tensor> result() override { return result_; }

 private:
  std::vector<at::Tensor> result_;
};

// gloo's Work under the name of the operator that began it.
class GlooWork : public c10d::Work {
 public:
  GlooWork(c10::intrusive_ptr<c10d::Work> work, const std::string& name, std::vector<at::Tensor> result, int beside)
      : work_(std::move(work)), name_(name), result_(std::move(result)), beside_(beside) {}
  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  int sourceRank() const override { return work_->sourceRank(); }
  std::vector<at::Tensor> result() override { return result_; }
  void synchronize() override { wait(kNoTimeout); }
  bool wait(std::chrono::milliseconds timeout) override {
    if (beside_ && checking_order()) {
      void* stream = c10_npu::getCurrentNPUStream().stream(/*need_empty=*/false);
      sim_order_stream_follows(stream, beside_);
      if (name_ == "c10d::barrier") sim_order_host_waits(stream);
    }
    try {
      return work_->wait(timeout);
    } catch (const c10::Error& error) {
      TORCH_CHECK(false, name_, " on the simulated HCCL (over gloo) failed: ", error.what_without_backtrace());
    } catch (const std::exception& error) {
      TORCH_CHECK(false, name_, " on the simulated HCCL (over gloo) failed: ", error.what());
    }
  }
  void abort() override { work_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return work_->getFuture(); }
  uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  const std::string& name_;  // of the operator's record, which lives as long as the process
  std::vector<at::Tensor> result_;
  int beside_;  // the collective's own stream, when the order is checked
};

struct Shadow {
  c10::weak_intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::ProcessGroup> twin;
  int stream = 0;  // the group's own stream, when the order is checked
};

std::mutex shadows_lock;
std::unordered_map<c10d::ProcessGroup*, Shadow> shadows;
thread_local int beside = 0;  // the stream of the collective that is being begun

c10::intrusive_ptr<c10d::ProcessGroup> shadow(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  std::lock_guard<std::mutex> guard(shadows_lock);
  auto it = shadows.find(group.get());
  if (it != shadows.end()) {
    if (it->second.group.lock() == group) return it->second.twin;
    shadows.erase(it);  // another group that lived at this address
  }
  auto backend = group->getBackend(kNpu);
  TORCH_CHECK(backend->getBackendName() == "gloo", "the process group's backend for npu is ", backend->getBackendName(),
              "; the simulation runs HCCL over gloo: create the group with backend='hccl'");
  auto twin = c10::make_intrusive<c10d::ProcessGroup>(group->getRank(), group->getSize());
  twin->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  twin->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  shadows.emplace(group.get(), Shadow{c10::weak_intrusive_ptr<c10d::ProcessGroup>(group), twin});
  return twin;
}

// gloo knows no bool and none of the 8-bit floats; HCCL moves them as bytes.
at::Tensor as_gloo_type(const at::Tensor& tensor) {
  if (!tensor.defined() || is_npu(tensor)) return tensor;
  const auto type = tensor.scalar_type();
  const bool bytes = type == at::kBool || type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2;
  return bytes ? tensor.view(at::kByte) : tensor;
}

}  // namespace

c10::intrusive_ptr<c10d::Work> completed_work(std::vector<at::Tensor> result) {
  return c10::make_intrusive<CompletedWork>(std::move(result));
}

void run_collective(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack) {
  const size_t base = stack->size() - info.arguments;
  std::vector<at::Tensor> outputs;
  collect_tensors((*stack)[base], outputs);
  // One dimension: gloo wants the output shaped as the inputs, one after the other.
  const bool flat = info.name == "c10d::_allgather_base_" || info.name == "c10d::_reduce_scatter_base_";
  c10::intrusive_ptr<c10d::ProcessGroup> twin;
  for (int i = 0; i < info.arguments; i++) {
    auto& value = (*stack)[base + i];
    if (flat && value.isTensor()) value = value.toTensor().view(-1);
    if (i == info.process_group) value = c10::IValue(twin = shadow(value.toCustomClass<c10d::ProcessGroup>()));
    else value = map_tensors(value, as_gloo_type);
  }
  try {
    if (is_uneven(info.name, *stack, base)) return run_uneven(info.name, twin, stack, base);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  } catch (const std::exception& error) {
    TORCH_CHECK(false, info.name, " on the simulated HCCL (over gloo) failed: ", error.what());
  }
  for (size_t i = base; i < stack->size(); i++)
    if ((*stack)[i].isObject()) {
      c10::intrusive_ptr<c10d::Work> work =
          c10::make_intrusive<GlooWork>((*stack)[i].toCustomClass<c10d::Work>(), info.name, outputs, beside);
      (*stack)[i] = c10::IValue(std::move(work));
    }
}

void run_collective_checked(const c10::OperatorHandle&, const OpInfo& info, torch::jit::Stack* stack, void* stream,
                            const std::function<void()>& run) {
  const size_t base = stack->size() - info.arguments;
  const torch::jit::Stack arguments(stack->begin() + static_cast<ptrdiff_t>(base), stack->end());
  int* group_stream = nullptr;
  if (info.process_group >= 0) {
    const auto group = arguments[info.process_group].toCustomClass<c10d::ProcessGroup>();
    shadow(group);
    std::lock_guard<std::mutex> guard(shadows_lock);
    group_stream = &shadows.at(group.get()).stream;  // stays where it is while the group lives
  }
  int none = 0;
  WorkScope scope(group_stream ? sim_order_enter_beside(stream, group_stream, "the stream of a process group") : sim_order_enter(stream));
  note_arguments(info, arguments.data());
  beside = group_stream ? *group_stream : none;
  try {
    run();
  } catch (...) {
    beside = none;
    throw;
  }
  beside = none;
}

void wait_collective(const torch::jit::Stack& results) {
  for (const auto& value : results)
    if (value.isObject()) value.toCustomClass<c10d::Work>()->wait();
}

torch::jit::Stack deferred_collective_results(const OpInfo& info, const torch::jit::Stack& arguments) {
  torch::jit::Stack results;
  std::vector<at::Tensor> outputs;
  collect_tensors(arguments[0], outputs);
  if (info.written.size() == 2) results.push_back(arguments[0]);  // (outputs, Work)
  if (!info.written.empty()) {
    results.emplace_back(completed_work(std::move(outputs)));
  }
  return results;
}

}  // namespace ascend_sim
