#include "random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include "torch_npu/csrc/aten/NPUGeneratorImpl.h"

namespace ascend_sim {
namespace {

// Neighbouring offsets and seeds must give unrelated Mersenne Twister states (splitmix64, Steele et al. 2014).
uint64_t scramble(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

uint64_t device_value(const at::Tensor* tensor) {
  return *static_cast<const uint64_t*>(tensor->const_data_ptr());  // device memory is host memory
}

std::mutex default_generator_lock;  // one DefaultGeneratorScope at a time

}  // namespace

struct Draw::State {
  at::Generator generator;  // keeps the tensors below alive
  at_npu::PhiloxNpuState philox;
};

Draw::Draw(const at::Generator& generator, int device) : state_(std::make_unique<State>()) {
  state_->generator = generator.defined() ? generator : at_npu::detail::getDefaultNPUGenerator(static_cast<c10::DeviceIndex>(device));
  auto* impl = state_->generator.get<at_npu::NPUGeneratorImpl>();
  std::lock_guard<std::mutex> guard(impl->mutex_);
  state_->philox = impl->philox_npu_state(kOffsetStep);
}
Draw::~Draw() = default;
Draw::Draw(Draw&&) noexcept = default;

at::Generator Draw::cpu_generator() const {
  const auto& philox = state_->philox;
  const uint64_t seed = philox.captured_ ? device_value(philox.seed_.ptr) : philox.seed_.val;
  const uint64_t offset = philox.captured_ ? device_value(philox.offset_.ptr) + philox.offset_intragraph_ : philox.offset_.val;
  return at::detail::createCPUGenerator(scramble(scramble(seed) + offset));
}

DefaultGeneratorScope::DefaultGeneratorScope(const Draw& draw) {
  default_generator_lock.lock();
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> guard(generator.mutex());
  saved_ = generator.clone();
  auto source = draw.cpu_generator();
  auto* target = generator.get<at::CPUGeneratorImpl>();
  target->set_engine(source.get<at::CPUGeneratorImpl>()->engine());
  target->set_next_float_normal_sample(std::nullopt);
  target->set_next_double_normal_sample(std::nullopt);
}

DefaultGeneratorScope::~DefaultGeneratorScope() {
  {
    auto generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard<std::mutex> guard(generator.mutex());
    auto* target = generator.get<at::CPUGeneratorImpl>();
    auto* source = saved_.get<at::CPUGeneratorImpl>();
    target->set_engine(source->engine());
    target->set_next_float_normal_sample(source->next_float_normal_sample());
    target->set_next_double_normal_sample(source->next_double_normal_sample());
  }
  default_generator_lock.unlock();
}

}  // namespace ascend_sim
