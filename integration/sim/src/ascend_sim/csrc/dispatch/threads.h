// One OpenMP team per process.
#pragma once

namespace ascend_sim {

// CPU kernels use the OpenMP team of the calling thread. Two Python threads that compute would own two teams, which
// compete for the same cores; so one thread, the first to compute, keeps its team and all others compute alone.
class ComputeThread {
 public:
  static void enter() {
    if (!is_owner) settle();
  }

 private:
  static void settle();
  static thread_local bool is_owner;
};

}  // namespace ascend_sim
