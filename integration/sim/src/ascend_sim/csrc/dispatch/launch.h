// The boxed kernel behind every operator of the simulated NPU.
#pragma once

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "op_info.h"

namespace ascend_sim {

class Launch : public c10::OperatorKernel {
 public:
  explicit Launch(OpInfo* info) : info_(info) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack);

 private:
  void launch(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  void run(const c10::OperatorHandle& op, torch::jit::Stack* stack);
  // The same, with the order of streams checked.
  void run_checked(const c10::OperatorHandle& op, torch::jit::Stack* stack, void* stream);
  OpInfo* info_;
};

// Behind npu/atb operators that have no reference: fails and names the operator.
class Missing : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack);
};

}  // namespace ascend_sim
