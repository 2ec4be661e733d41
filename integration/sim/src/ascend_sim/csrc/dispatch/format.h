// Casting tensors to other storage formats (ND, fractal NZ, ...). The simulation keeps the values in ND order and only the
// format itself, which torch_npu's storage carries, and the memory its padding takes.
#pragma once

#include <ATen/core/stack.h>

#include "op_info.h"

namespace ascend_sim {

// The format a cast on top of the stack asks for: a number, or that of a tensor.
int64_t target_format(const OpInfo& info, const torch::jit::Stack& stack, size_t base);

// Finishes a cast that needs no new memory (same format, both plain, or in place) and returns true; false for the rest.
bool casts_nothing(const OpInfo& info, torch::jit::Stack* stack);

}  // namespace ascend_sim
