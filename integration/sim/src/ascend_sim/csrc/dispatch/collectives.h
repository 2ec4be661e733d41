// HCCL's collectives over gloo.
#pragma once

#include <ATen/core/stack.h>

#include "op_info.h"

namespace ascend_sim {

// Runs a c10d operator whose tensors are CPU aliases: the process group argument is replaced by one that offers the
// group's gloo backend for CPU tensors, so that the group itself keeps refusing CPU tensors as HCCL does.
void run_collective(const c10::OperatorHandle& op, const OpInfo& info, torch::jit::Stack* stack);

// Waits for the Work among the results of run_collective().
void wait_collective(const torch::jit::Stack& results);

// Results of a collective that runs later: its output arguments and a Work that is complete, because waiting for a
// collective orders streams and never the host.
torch::jit::Stack deferred_collective_results(const OpInfo& info, const torch::jit::Stack& arguments);

}  // namespace ascend_sim
