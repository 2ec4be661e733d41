// What operators tell the checker of stream order: the memory they use, and when the host waits for them.
#pragma once

#include <ATen/core/stack.h>

#include "../sim_api.h"
#include "op_info.h"

namespace ascend_sim {

inline bool checking_order() { return sim_order() == SIM_ORDER_CHECK; }

// While it lives, the calling thread does work of a stream.
class WorkScope {
 public:
  explicit WorkScope(sim_place before) : before_(before) {}
  ~WorkScope() { sim_order_return(before_); }
  WorkScope(const WorkScope&) = delete;

 private:
  sim_place before_;
};

// Notes what the call uses: `arguments` are NPU tensors or their CPU aliases. Throws if a use conflicts with an earlier one.
void note_arguments(const OpInfo& info, const c10::IValue* arguments);
// The same for results that are new tensors; one that is a view of an argument is not.
void note_results(const OpInfo& info, const c10::IValue* arguments, c10::ArrayRef<c10::IValue> results);

// Name of an element type as torch prints it ("float32"); lives as long as the process.
const char* type_name(c10::ScalarType type);

// The same for memory that results will be written to.
void note_fresh(const OpInfo& info, const at::Tensor& tensor);

// Whether the tensor is in pinned host memory.
bool is_pinned_host(const at::Tensor& tensor);

// Whether the call copies from or to pageable host memory: hardware does so before the call returns, non-blocking or not.
bool copies_pageable(const OpInfo& info, const c10::IValue* arguments);

}  // namespace ascend_sim
