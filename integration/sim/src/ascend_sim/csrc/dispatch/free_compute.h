// "Free compute": for measuring host time. Listed operators return outputs of the shape they had before, without
// computing; tasks of graphs are counted and skipped.
#pragma once

#include <ATen/core/stack.h>

#include "op_info.h"

namespace ascend_sim {

class FreeCompute {
 public:
  static void enable(bool on);
  static bool enabled() { return enabled_; }

  // Replaces the call on top of the stack by remembered results; false if this signature has not been seen yet.
  static bool replace(const OpInfo& info, torch::jit::Stack* stack, uint64_t* signature);
  // Remembers the results that a call of this signature left on the stack from `base` on.
  static void remember(const OpInfo& info, uint64_t signature, const std::vector<c10::TensorImpl*>& arguments,
                       const torch::jit::Stack& stack, size_t base);

 private:
  static std::atomic<bool> enabled_;
};

}  // namespace ascend_sim
