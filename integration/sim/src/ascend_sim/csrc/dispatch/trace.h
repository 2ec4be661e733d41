// Chrome traces: every operator, graph task, replay, event and copy with stream and time, streamed into a file.
#pragma once

#include <ATen/core/stack.h>

#include <atomic>
#include <string>

#include "op_info.h"

namespace ascend_sim {

class Trace {
 public:
  static bool on() { return C10_UNLIKELY(on_.load(std::memory_order_relaxed)); }

  // Begins a trace. The file is made when the first event is written; an existing one is replaced.
  static void start(const std::string& path);
  // Ends it and completes the file. Returns how many events it has.
  static int64_t stop();

  // "float32[8, 64] int64[3]" for the tensors of a call.
  static std::string describe(const c10::IValue* arguments, size_t count);
  // An operator called outside graphs, or recorded into one.
  static void call(const OpInfo& info, void* stream, const std::string& tensors, const char* category, int64_t begin_ns);

 private:
  static std::atomic<bool> on_;
};

}  // namespace ascend_sim
