#include "threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <atomic>

namespace ascend_sim {
namespace {

// torch brings its own OpenMP library; its functions are found at run time because this library is not linked to it.
void set_own_team(int threads) {
  using Setter = void (*)(int);
  static const auto setter = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (setter) setter(threads);
}

std::atomic<bool> owned{false};

struct Membership {
  bool owner = false;
  int team = 0;  // the thread's own team size before it was reduced to one
  ~Membership() {
    if (owner) owned = false;  // the thread ends: the next one that computes takes over
  }
};

}  // namespace

thread_local bool ComputeThread::is_owner = false;

void ComputeThread::settle() {
  static thread_local Membership membership;
  if (!membership.team) {
    membership.team = at::get_num_threads();
    set_own_team(1);
  }
  bool expected = false;
  if (!owned.compare_exchange_strong(expected, true)) return;
  membership.owner = is_owner = true;
  set_own_team(membership.team);
}

}  // namespace ascend_sim
