// Operators that do not run at the call: captured into a graph, updating a captured task, or queued behind an event.
#pragma once

#include <ATen/core/stack.h>

#include "../sim_api.h"
#include "op_info.h"

namespace ascend_sim {

// Submits the call on top of `stack` to `stream` and replaces it by its results, whose values come later.
void submit_task(const c10::OperatorHandle& op, const OpInfo& info, sim_mode mode, void* stream, torch::jit::Stack* stack);

// Whether the call on top of the stack makes the host wait for the device.
bool needs_host(const OpInfo& info, const torch::jit::Stack& stack, size_t base);

// In random order: whether the call can wait in a queue. It cannot if torch_npu runs it on the CPU, if the shapes of its
// results are not known before it has run, or if it resizes an argument.
bool can_be_queued(const c10::OperatorHandle& op, const OpInfo& info, const torch::jit::Stack& stack, size_t base);

// The tensors of a piece of work made by submit_task(), as Trace::describe() says them; empty for other work.
std::string describe_task(const sim_work& work);

// Throws the runtime's message if `error` is one.
void check_runtime(int error, const std::string& what);

}  // namespace ascend_sim
