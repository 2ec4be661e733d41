// Norms, activations, quantisation and cache writes, each in one pass. What they compute is defined by ascend_sim/references.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cstring>

#include "widths.h"

namespace ascend_sim {
namespace {

template <typename Body>
void for_dtype(const char* name, at::ScalarType type, const Body& body) {
  switch (type) {
    case at::kHalf: return body.template operator()<c10::Half>();
    case at::kBFloat16: return body.template operator()<c10::BFloat16>();
    case at::kFloat: return body.template operator()<float>();
    default: TORCH_CHECK(false, name, ": ", type);
  }
}

// x [..., D] and residual, contiguous, gamma [D] float. Returns y, 1 / rms [..., 1] float, and x + residual (or nothing).
std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_rows(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                                                        const at::Tensor& gamma, double epsilon) {
  const int64_t size = gamma.numel(), rows = size ? x.numel() / size : 0;
  at::Tensor y = at::empty_like(x), sum = residual ? at::empty_like(x) : at::empty({0}, x.options());
  auto shape = x.sizes().vec();
  shape.back() = 1;
  at::Tensor rstd = at::empty(shape, x.options().dtype(at::kFloat));
  const bool wide_enough = has_wide();
  for_dtype("rms_norm", x.scalar_type(), [&]<typename T>() {
    auto* const kernel = wide_enough ? wide::rms_norm<T> : portable::rms_norm<T>;
    const T *from = x.const_data_ptr<T>(), *other = residual ? residual->const_data_ptr<T>() : nullptr;
    T *total = residual ? sum.mutable_data_ptr<T>() : nullptr, *to = y.mutable_data_ptr<T>();
    float* scales = rstd.mutable_data_ptr<float>();
    for (int64_t row = 0; row < rows; row++) {
      const int64_t at = row * size;
      scales[row] = kernel(from + at, other ? other + at : nullptr, total ? total + at : nullptr, gamma.const_data_ptr<float>(),
                           static_cast<float>(epsilon), size, to + at);
    }
  });
  return {y, rstd, sum};
}

// x [..., 2 D], contiguous. Returns [..., D].
at::Tensor swiglu_rows(const at::Tensor& x) {
  auto shape = x.sizes().vec();
  const int64_t size = shape.back() /= 2, rows = size ? x.numel() / (2 * size) : 0;
  at::Tensor y = at::empty(shape, x.options());
  const bool wide_enough = has_wide();
  for_dtype("swiglu", x.scalar_type(), [&]<typename T>() {
    auto* const kernel = wide_enough ? wide::swiglu<T> : portable::swiglu<T>;
    const T* from = x.const_data_ptr<T>();
    T* to = y.mutable_data_ptr<T>();
    for (int64_t row = 0; row < rows; row++) kernel(from + 2 * row * size, from + (2 * row + 1) * size, size, to + row * size);
  });
  return y;
}

// x [..., D], contiguous. Returns int8 [..., D] and scales [...] float: max(|row|) / 127.
std::tuple<at::Tensor, at::Tensor> quantize_rows(const at::Tensor& x) {
  const int64_t size = x.size(-1), rows = size ? x.numel() / size : 0;
  at::Tensor y = at::empty(x.sizes(), x.options().dtype(at::kChar));
  at::Tensor scale = at::empty(x.sizes().slice(0, x.dim() - 1), x.options().dtype(at::kFloat));
  const bool wide_enough = has_wide();
  for_dtype("quantize", x.scalar_type(), [&]<typename T>() {
    auto* const kernel = wide_enough ? wide::quantize<T> : portable::quantize<T>;
    const T* from = x.const_data_ptr<T>();
    auto* to = y.mutable_data_ptr<int8_t>();
    auto* scales = scale.mutable_data_ptr<float>();
    for (int64_t row = 0; row < rows; row++) scales[row] = kernel(from + row * size, size, to + row * size);
  });
  return {y, scale};
}

// cache [blocks, block_size, ...] with whole tokens contiguous, tokens [T, ...] contiguous, slots int32 or int64, at most
// T; slots below 0 are skipped.
void write_slots(const std::string& op, at::Tensor cache, const at::Tensor& tokens, const at::Tensor& slots) {
  const int64_t block_size = cache.size(1), size = cache.size(0) * block_size;
  TORCH_CHECK(cache.scalar_type() == tokens.scalar_type() && cache.numel() * tokens.size(0) == tokens.numel() * size, op,
              ": tokens are ", tokens.scalar_type(), " ", tokens.sizes(), "; the hardware allows those of the cache, ",
              cache.scalar_type(), " ", cache.sizes(), " (blocks, block_size, token).");
  const int64_t bytes = tokens.size(0) ? tokens.nbytes() / tokens.size(0) : 0;
  char* to = static_cast<char*>(cache.mutable_data_ptr());
  const char* from = static_cast<const char*>(tokens.const_data_ptr());
  const auto copy = [&]<typename Slot>() {
    const Slot* numbers = slots.const_data_ptr<Slot>();
    for (int64_t i = 0; i < slots.numel(); i++) {
      const int64_t slot = numbers[i];
      TORCH_CHECK(slot < size, op, ": slot ", i, " is ", slot, "; the hardware allows slots below ", size, " (blocks x block_size).");
      if (slot < 0) continue;
      const int64_t element = slot / block_size * cache.stride(0) + slot % block_size * cache.stride(1);
      std::memcpy(to + element * cache.element_size(), from + i * bytes, bytes);
    }
  };
  if (slots.scalar_type() == at::kInt) copy.operator()<int32_t>();
  else copy.operator()<int64_t>();
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(ascend_sim, library) {
  library.def("rms_norm(Tensor x, Tensor? residual, Tensor gamma, float epsilon) -> (Tensor, Tensor, Tensor)");
  library.def("swiglu(Tensor x) -> Tensor");
  library.def("quantize(Tensor x) -> (Tensor, Tensor)");
  library.def("write_slots(str op, Tensor(a!) cache, Tensor tokens, Tensor slots) -> ()");
}

TORCH_LIBRARY_IMPL(ascend_sim, CPU, library) {
  library.impl("rms_norm", rms_norm_rows);
  library.impl("swiglu", swiglu_rows);
  library.impl("quantize", quantize_rows);
  library.impl("write_slots", write_slots);
}

}  // namespace ascend_sim
