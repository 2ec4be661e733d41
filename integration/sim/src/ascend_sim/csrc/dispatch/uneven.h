// Collectives with pieces of different sizes, which HCCL takes and gloo does not: made of others, complete on return.
#pragma once

#include <ATen/core/stack.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace ascend_sim {

// Whether this call needs it; the same on every rank, because each knows the sizes of all pieces.
bool is_uneven(const std::string& name, const torch::jit::Stack& stack, size_t base);

// Runs it on CPU tensors through `group`; the call on the stack from `base` on is replaced by its results.
void run_uneven(const std::string& name, const c10::intrusive_ptr<c10d::ProcessGroup>& group, torch::jit::Stack* stack, size_t base);

}  // namespace ascend_sim
