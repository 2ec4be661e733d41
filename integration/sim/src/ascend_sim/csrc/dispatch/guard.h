// Memory that captured tasks use. A graph keeps the addresses of its pool alive and no others: an argument from elsewhere
// must outlive it, at the same address.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <vector>

#include "op_info.h"

namespace ascend_sim {

class MemoryGuards {
 public:
  // Remembers where the tensors among the arguments of a call lie.
  MemoryGuards(const OpInfo& info, const torch::jit::Stack& arguments);

  // Called at a launch of the graph, which has a number: what is wrong with the memory, or nothing.
  std::string problem(uint64_t launch);

 private:
  struct Guard {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const void* address;
    bool pinned;
    std::string argument;  // "self, float32[4]"
  };
  std::vector<Guard> guards_;
};

}  // namespace ascend_sim
