// Random draws of the NPU generators, made by CPU kernels.
#pragma once

#include <ATen/core/Generator.h>

#include <memory>

namespace ascend_sim {

// One draw: the generator's seed and offset at the time of the call, or, inside a capture, where a replay finds them.
// A draw is a function of (seed, offset) alone, so that set_offset() reproduces it; every operator call advances the
// offset by kOffsetStep, the step by which vLLM rewinds generators.
constexpr uint64_t kOffsetStep = 4;

class Draw {
 public:
  // `generator` undefined: the default generator of the device.
  Draw(const at::Generator& generator, int device);
  ~Draw();
  Draw(Draw&&) noexcept;

  // A CPU generator in the state of this draw.
  at::Generator cpu_generator() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Lets kernels without a generator argument draw from `draw` through the CPU's default generator.
class DefaultGeneratorScope {
 public:
  explicit DefaultGeneratorScope(const Draw& draw);
  ~DefaultGeneratorScope();

 private:
  at::Generator saved_;
};

}  // namespace ascend_sim
