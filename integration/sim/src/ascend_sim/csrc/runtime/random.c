/* The order of work that a seed chooses. */
#include "sim.h"

bool sim_random;
static uint64_t state;

void sim_random_seed(uint64_t seed) { state = seed; }

/* splitmix64 (Steele et al. 2014); the callers hold sim_lock, so that one thread's program draws the same every time. */
size_t sim_random_below(size_t bound) {
    uint64_t value = state += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return (size_t)((value ^ (value >> 31)) % bound);
}
