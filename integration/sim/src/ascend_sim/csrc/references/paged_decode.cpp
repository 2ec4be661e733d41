// Attention of one query token per request over a paged cache: the step every generated token takes, computed where the
// cache lies instead of on a gathered copy. What it computes is defined by ascend_sim/references/attention/core.py.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <vector>

#include "widths.h"

namespace ascend_sim {
namespace {

// A request's blocks up to its length are blocks of the cache; those past it are not read.
void check_blocks(const std::string& op, const at::Tensor& table, at::IntArrayRef lengths, int64_t block_size, int64_t blocks) {
  const int32_t* entries = table.const_data_ptr<int32_t>();
  for (size_t i = 0; i < lengths.size(); i++)
    for (int64_t b = 0; b * block_size < lengths[i]; b++) {
      const int32_t block = entries[i * table.stride(0) + b];
      TORCH_CHECK(block >= 0 && block < blocks, op, ": block_table[", i, "][", b, "] is ", block,
                  "; the hardware allows blocks 0 to ", blocks - 1, ".");
    }
}

// op names the operator in errors; query [B, H, D]; key [blocks, block_size, Hk, D] and value, of any strides with the
// last 1; table [B, ...] int32; lengths of the requests; before: how many keys before the last one are seen; sink [H]
// float. Returns [B, H, Dv] and the log-sum-exp [B, H] float.
std::tuple<at::Tensor, at::Tensor> paged_decode(const std::string& op, const at::Tensor& query, const at::Tensor& key,
                                                const at::Tensor& value, const at::Tensor& table, at::IntArrayRef lengths,
                                                double scale, int64_t before, const std::optional<at::Tensor>& sink) {
  const int64_t batch = query.size(0), heads = query.size(1), groups = key.size(2), fold = heads / groups;
  TORCH_CHECK(key.stride(3) == 1 && value.stride(3) == 1 && query.stride(2) == 1 && table.stride(1) == 1, "paged_decode: strides");
  TORCH_CHECK(key.scalar_type() == query.scalar_type() && value.scalar_type() == query.scalar_type(), "paged_decode: dtypes");
  TORCH_CHECK(value.sizes().slice(0, 3) == key.sizes().slice(0, 3), op, ": the value cache is ", value.sizes(),
              "; the hardware allows that of the key cache but for the head size, ", key.sizes(), " (blocks, block_size, heads, head size).");
  TORCH_CHECK(key.size(3) == query.size(2) && fold * groups == heads && static_cast<int64_t>(lengths.size()) == batch && table.size(0) == batch,
              "paged_decode: sizes");
  check_blocks(op, table, lengths, key.size(1), key.size(0));
  const int64_t block_size = key.size(1);
  const Decode call{fold, key.size(3), value.size(3), query.stride(1), static_cast<float>(scale)};
  at::Tensor out = at::empty({batch, heads, call.value_size}, query.options());
  at::Tensor lse = at::empty({batch, heads}, query.options().dtype(at::kFloat));
  const int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  const bool wide_enough = has_wide();
  const auto compute = [&]<typename T>() {
    at::parallel_for(0, batch * groups, 4, [&](int64_t from, int64_t to) {
      std::vector<int64_t> offsets(2 * longest);
      std::vector<float> scratch(4 * (call.size + longest));
      for (int64_t item = from, last = -1; item < to; item++) {
        const int64_t request = item / groups, group = item % groups, head = group * fold, length = lengths[request];
        const int64_t first = before < length ? length - 1 - before : 0;
        if (request != last) {
          const int32_t* blocks = table.const_data_ptr<int32_t>() + request * table.stride(0);
          for (int64_t t = first; t < length; t++) {
            const int64_t block = blocks[t / block_size], row = t % block_size;
            offsets[t - first] = block * key.stride(0) + row * key.stride(1);
            offsets[longest + t - first] = block * value.stride(0) + row * value.stride(1);
          }
          last = request;
        }
        (wide_enough ? wide::attend<T> : portable::attend<T>)(
            call, query.const_data_ptr<T>() + request * query.stride(0) + head * query.stride(1),
            key.const_data_ptr<T>() + group * key.stride(2), value.const_data_ptr<T>() + group * value.stride(2),
            Rows{length - first, offsets.data(), offsets.data() + longest}, sink ? sink->const_data_ptr<float>() + head : nullptr,
            out.mutable_data_ptr<T>() + (request * heads + head) * call.value_size, lse.mutable_data_ptr<float>() + request * heads + head,
            scratch.data());
      }
    });
  };
  switch (query.scalar_type()) {
    case at::kHalf: compute.operator()<c10::Half>(); break;
    case at::kBFloat16: compute.operator()<c10::BFloat16>(); break;
    case at::kFloat: compute.operator()<float>(); break;
    default: TORCH_CHECK(false, "paged_decode: ", query.scalar_type());
  }
  return {out, lse};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(ascend_sim, library) {
  library.def(
      "paged_decode(str op, Tensor query, Tensor key, Tensor value, Tensor table, int[] lengths, float scale, int before, "
      "Tensor? sink) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(ascend_sim, CPU, library) { library.impl("paged_decode", paged_decode); }

}  // namespace ascend_sim
