// The inner loops of the references, compiled twice: for any processor, and for x86-64 with AVX2.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

// Sums of a few queries stay in registers only if the loops over them are unrolled.
#define ASCEND_SIM_UNROLL _Pragma("GCC unroll 4")

namespace ascend_sim {

// One query token per request: head sizes, elements between queries, and the factor on scores.
struct Decode {
  int64_t fold, size, value_size, query_stride;
  float scale;
};

// Offsets of a request's seen tokens from a key head's start in the caches.
struct Rows {
  int64_t count;
  const int64_t *keys, *values;
};

namespace portable {
#include "vectors.h"

#include "paged_decode_core.h"
#include "products_core.h"
#include "rows_core.h"
}  // namespace portable

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace wide {
#include "vectors.h"

#include "paged_decode_core.h"
#include "products_core.h"
#include "rows_core.h"
}  // namespace wide
#pragma GCC pop_options

inline bool has_wide() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
namespace wide = portable;

inline bool has_wide() { return false; }
#endif

}  // namespace ascend_sim
