#include "format.h"

#include "alias.h"
#include "torch_npu/csrc/core/NPUStorageImpl.h"
#include "torch_npu/csrc/core/npu/NPUFormat.h"

namespace ascend_sim {
namespace {

// Formats without blocks or padding, between which a cast changes the name only: NCHW, NHWC, ND, NCDHW.
bool plain(int64_t format) { return format == 0 || format == 1 || format == kFormatNd || format == 30; }

void replace(torch::jit::Stack* stack, size_t base, const at::Tensor& result) {
  stack->resize(base);
  stack->emplace_back(result);
}

}  // namespace

int64_t target_format(const OpInfo&, const torch::jit::Stack& stack, size_t base) {
  const auto& target = stack[base + 1];
  return target.isTensor() ? format_of(target.toTensor()) : target.toInt();
}

bool casts_nothing(const OpInfo& info, torch::jit::Stack* stack) {
  const size_t base = stack->size() - info.arguments;
  const at::Tensor self = (*stack)[base].toTensor();
  if (!is_npu(self)) return false;
  const int64_t now = format_of(self), target = target_format(info, *stack, base);
  if (now != target && plain(now) && plain(target)) {
    auto* storage = static_cast<torch_npu::NPUStorageImpl*>(self.storage().unsafeGetStorageImpl());
    storage->npu_desc_.npu_format_ = static_cast<aclFormat>(target);
  } else if (now != target) {
    if (info.written[0] < 0) return false;
    const auto cast = at_npu::native::npu_format_cast(self, target);
    at::NoGradGuard untracked;
    const_cast<at::Tensor&>(self).set_(cast.storage(), cast.storage_offset(), cast.sizes(), cast.strides());
  }
  replace(stack, base, self);
  return true;
}

}  // namespace ascend_sim
