// Products of float16 and bfloat16 matrices: sums in float32, rounded once, as the cube unit has them. torch computes
// them on processors without instructions for these types in a plain loop, which takes several times as long.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/mm_ops.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "widths.h"

namespace ascend_sim {
namespace {

constexpr int64_t kColumns = 8 * portable::kTileColumns;  // widened at a time; few enough for the second-level cache
constexpr int64_t kRows = 64;

bool is_half(const at::Tensor& tensor) { return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16; }

bool are_half(const at::Tensor& a, const at::Tensor& b) { return is_half(a) && a.scalar_type() == b.scalar_type(); }

// The addend of a product, and the factors of both.
struct Epilogue {
  const at::Tensor* addend = nullptr;  // [M, N], expanded
  float alpha = 1, beta = 1;
};

// out [M, N] contiguous = alpha a [M, K] b [K, N] + beta addend
template <typename T>
void multiply_into(const at::Tensor& a, const at::Tensor& b, const Epilogue& epilogue, T* out) {
  const at::Tensor rows = a.contiguous(), columns = b.t().contiguous();
  const int64_t m = rows.size(0), depth = rows.size(1), n = columns.size(0), padded = (depth + 7) / 8 * 8;
  const bool wide_enough = has_wide();
  auto* const widen = wide_enough ? wide::widen<T> : portable::widen<T>;
  auto* const multiply = wide_enough ? wide::multiply : portable::multiply;
  auto* const finish = wide_enough ? wide::finish_row<T> : portable::finish_row<T>;
  const T *row_data = rows.const_data_ptr<T>(), *column_data = columns.const_data_ptr<T>();
  const at::Tensor* addend = epilogue.beta == 0 ? nullptr : epilogue.addend;  // what beta = 0 multiplies may be NaN
  std::vector<float> widened(m * padded);
  for (int64_t r = 0; r < m; r++) widen(row_data + r * depth, depth, widened.data() + r * padded);
  at::parallel_for(0, (n + kColumns - 1) / kColumns, 4, [&](int64_t from, int64_t to) {
    std::vector<float> panel(kColumns * padded), sums(kRows * kColumns);
    for (int64_t c = from * kColumns; c < std::min(to * kColumns, n); c += kColumns) {
      const int64_t count = std::min(kColumns, n - c);
      for (int64_t i = 0; i < count; i++) widen(column_data + (c + i) * depth, depth, panel.data() + i * padded);
      // Columns past the last one are of an earlier panel, or zeros; their sums are not used.
      for (int64_t r = 0; r < m; r += kRows) {
        const int64_t block = std::min(kRows, m - r);
        multiply(widened.data() + r * padded, panel.data(), block, kColumns, padded, sums.data());
        for (int64_t i = 0; i < block; i++) {
          const T* added = addend ? addend->const_data_ptr<T>() + (r + i) * addend->stride(0) + c * addend->stride(1) : nullptr;
          finish(sums.data() + i * kColumns, added, addend ? addend->stride(1) : 0, epilogue.alpha, epilogue.beta, count,
                 out + (r + i) * n + c);
        }
      }
    }
  });
}

void multiply_into(const at::Tensor& a, const at::Tensor& b, const Epilogue& epilogue, at::Tensor& out) {
  if (a.scalar_type() == at::kHalf) multiply_into(a, b, epilogue, out.mutable_data_ptr<c10::Half>());
  else multiply_into(a, b, epilogue, out.mutable_data_ptr<c10::BFloat16>());
}

constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);

bool multiplies(const at::Tensor& a, const at::Tensor& b) {
  return are_half(a, b) && a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0) && a.size(1) > 0;
}

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  if (!multiplies(a, b)) return at::_ops::mm::redispatch(kCpu, a, b);
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  multiply_into(a, b, {}, out);
  return out;
}

at::Tensor addmm(const at::Tensor& addend, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  if (!multiplies(a, b) || addend.scalar_type() != a.scalar_type() || addend.dim() > 2) return at::_ops::addmm::redispatch(kCpu, addend, a, b, beta, alpha);
  const at::Tensor expanded = addend.expand({a.size(0), b.size(1)});
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  multiply_into(a, b, {&expanded, alpha.toFloat(), beta.toFloat()}, out);
  return out;
}

// Any number of leading dimensions against one matrix is one product; batches of matrices are multiplied one by one.
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b) {
  if (!are_half(a, b) || a.dim() < 2 || b.dim() < 2 || a.size(-1) != b.size(-2) || a.size(-1) == 0 || (b.dim() > 2 && a.dim() != b.dim()))
    return at::_ops::matmul::redispatch(kCpu, a, b);
  auto shape = a.sizes().vec();
  shape.back() = b.size(-1);
  if (b.dim() == 2) {
    at::Tensor out = at::empty(shape, a.options());
    const int64_t rows = a.numel() / a.size(-1);
    at::Tensor flat = out.view({rows, b.size(1)});
    multiply_into(a.reshape({rows, a.size(-1)}), b, {}, flat);
    return out;
  }
  if (a.sizes().slice(0, a.dim() - 2) != b.sizes().slice(0, b.dim() - 2)) return at::_ops::matmul::redispatch(kCpu, a, b);
  at::Tensor out = at::empty(shape, a.options());
  const at::Tensor left = a.flatten(0, -3), right = b.flatten(0, -3), batches = out.flatten(0, -3);
  for (int64_t i = 0; i < batches.size(0); i++) {
    at::Tensor product = batches[i];
    multiply_into(left[i], right[i], {}, product);
  }
  return out;
}

at::Tensor bmm(const at::Tensor& a, const at::Tensor& b) {
  return a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) ? matmul(a, b) : at::_ops::bmm::redispatch(kCpu, a, b);
}

}  // namespace

// The key that dispatch/install.cpp looks for.
TORCH_LIBRARY_IMPL(aten, PrivateUse2, library) {
  library.impl("mm", mm);
  library.impl("addmm", addmm);
  library.impl("matmul", matmul);
  library.impl("bmm", bmm);
}

}  // namespace ascend_sim
