// HCCL's collectives over gloo.
#pragma once

#include <ATen/core/stack.h>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>

#include "op_info.h"

namespace ascend_sim {

// Runs a c10d operator whose tensors are CPU aliases: the process group argument is replaced by one that offers the
// group's gloo backend for CPU tensors, so that the group itself keeps refusing CPU tensors as HCCL does.
void run_collective(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack);

// The same through `run` on NPU tensors, with the order of streams checked: the collective runs beside `stream`, on its
// group's own; what waits for its Work is ordered after it.
void run_collective_checked(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack, void* stream,
                            const std::function<void()>& run);

// A Work that is complete.
c10::intrusive_ptr<c10d::Work> completed_work(std::vector<at::Tensor> result);

// Waits for the Work among the results of run_collective().
void wait_collective(const torch::jit::Stack& results);

// Results of a collective that runs later: its output arguments and a Work that is complete, because waiting for a
// collective orders streams and never the host.
torch::jit::Stack deferred_collective_results(const OpInfo& info, const torch::jit::Stack& arguments);

}  // namespace ascend_sim
