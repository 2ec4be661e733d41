#include "trace.h"

#include <c10/core/ScalarType.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>

#include "../sim_api.h"
#include "conversion.h"
#include "task.h"

namespace ascend_sim {
namespace {

constexpr size_t kBuffered = 1 << 16;  // bytes held back before they are written

struct File {
  std::mutex lock;
  std::string path, buffer;
  std::FILE* handle = nullptr;
  int64_t events = 0;
  std::set<std::pair<int, int>> known;  // device and stream that have been named

  void flush() {
    if (buffer.empty()) return;
    if (!handle) {
      handle = std::fopen(path.c_str(), "w");
      TORCH_CHECK(handle, "the trace ", path, " cannot be written: ", std::strerror(errno));
      std::fputs("[\n", handle);  // the format allows the closing bracket to be missing: a killed program leaves a trace, too
    }
    std::fwrite(buffer.data(), 1, buffer.size(), handle);
    std::fflush(handle);
    buffer.clear();
  }

  void line(const std::string& json) {
    if (events++) buffer += ",\n";
    buffer += json;
    if (buffer.size() > kBuffered) flush();
  }

  void name(int device, int stream) {
    if (!known.emplace(device, stream).second) return;
    std::ostringstream out;
    out << R"({"ph": "M", "name": "process_name", "pid": )" << device << R"(, "args": {"name": "npu:)" << device << "\"}},\n"
        << R"({"ph": "M", "name": "thread_name", "pid": )" << device << R"(, "tid": )" << stream << R"(, "args": {"name": "stream )"
        << stream << "\"}}";
    line(out.str());
  }
};

// Never destroyed: work may run while the process ends.
File& file() {
  static auto* open = new File;
  return *open;
}

// Microseconds with nanoseconds behind the point.
std::string micro(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(ns / 1000), static_cast<int>(ns % 1000));
  return text;
}

std::string slice(const std::string& name, const char* category, int device, int stream, int64_t begin, int64_t end, const std::string& args) {
  std::ostringstream out;
  out << R"({"ph": "X", "name": ")" << name << R"(", "cat": ")" << category << R"(", "pid": )" << device << R"(, "tid": )" << stream
      << R"(, "ts": )" << micro(begin) << R"(, "dur": )" << micro(end - begin) << R"(, "args": {)" << args << "}}";
  return out.str();
}

// An arrow from the record of an event to the waits for it; ends bind to the slices around them.
std::string arrow(const sim_trace_event& event) {
  std::ostringstream out;
  out << R"({"ph": ")" << (event.kind == SIM_TRACE_RECORD ? "s" : "f") << R"(", "bp": "e", "name": "event", "cat": "event", "id": ")"
      << event.event << '/' << event.ticket << R"(", "pid": )" << event.device << R"(, "tid": )" << event.stream << R"(, "ts": )"
      << micro(event.begin_ns) << "}";
  return out.str();
}

void observe(const sim_trace_event* event) {
  std::ostringstream args, name;
  const char* category = "event";
  switch (event->kind) {
    case SIM_TRACE_WORK:
      name << event->name;
      category = event->graph ? "graph" : "queued";
      args << R"("tensors": ")" << describe_task(*event->work) << '"';
      if (event->graph) args << R"(, "graph": )" << event->graph << R"(, "task": )" << event->task;
      break;
    case SIM_TRACE_REPLAY:
      name << "replay of graph " << event->graph;
      category = "replay";
      args << R"("first task": )" << event->task << R"(, "tasks": )" << event->tasks - event->task;
      break;
    case SIM_TRACE_RECORD: name << "record event " << event->event; break;
    case SIM_TRACE_WAIT: name << "wait for event " << event->event; break;
    case SIM_TRACE_COPY:
      name << event->name;
      category = "copy";
      args << R"("bytes": )" << event->bytes;
      break;
  }
  std::lock_guard<std::mutex> guard(file().lock);
  if (!Trace::on()) return;
  file().name(event->device, event->stream);
  file().line(slice(name.str(), category, event->device, event->stream, event->begin_ns, event->end_ns, args.str()));
  if (event->kind == SIM_TRACE_RECORD || event->kind == SIM_TRACE_WAIT) file().line(arrow(*event));
}

}  // namespace

std::atomic<bool> Trace::on_{false};

void Trace::start(const std::string& path) {
  std::lock_guard<std::mutex> guard(file().lock);
  TORCH_CHECK(!on_, "a trace is being written to ", file().path, " already");
  file().path = path;
  file().events = 0;
  file().known.clear();
  on_ = true;
  sim_set_tracer(observe);
}

int64_t Trace::stop() {
  sim_set_tracer(nullptr);
  std::lock_guard<std::mutex> guard(file().lock);
  on_ = false;
  const auto events = file().events;
  file().flush();
  if (file().handle) {
    std::fputs("\n]\n", file().handle);
    std::fclose(file().handle);
    file().handle = nullptr;
  }
  file().events = 0;
  return events;
}

std::string Trace::describe(const c10::IValue* arguments, size_t count) {
  std::ostringstream out;
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < count; i++)
    if (arguments[i].isTensor() || arguments[i].isList()) collect_tensors(arguments[i], tensors);
  const char* separator = "";
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) continue;
    out << separator << c10::getDtypeNames(tensor.scalar_type()).first << tensor.sizes();
    separator = " ";
  }
  return out.str();
}

void Trace::call(const OpInfo& info, void* stream, const std::string& tensors, const char* category, int64_t begin_ns) {
  int device = 0, number = 0;
  sim_stream_number(stream, &device, &number);
  const auto end_ns = sim_now_ns();
  std::lock_guard<std::mutex> guard(file().lock);
  if (!on()) return;
  file().name(device, number);
  file().line(slice(info.name, category, device, number, begin_ns, end_ns, "\"tensors\": \"" + tensors + "\""));
}

}  // namespace ascend_sim
