#include "guard.h"

#include <ATen/core/CachingHostAllocator.h>

#include <mutex>

#include "alias.h"
#include "conversion.h"
#include "order.h"
#include "torch_npu/csrc/core/npu/NPUCachingAllocator.h"

namespace ascend_sim {
namespace {

// Memory of the allocator itself; a tensor over another's memory says nothing about how long that lives.
bool owns_memory(const at::Tensor& tensor, bool pinned) {
  static const auto npu = c10::GetAllocator(kNpu)->raw_deleter();
  static const auto host = at::getHostAllocator(kNpu)->allocate(1).get_deleter();
  return tensor.storage().data_ptr().get_deleter() == (pinned ? host : npu);
}

std::mutex guards_lock;  // two threads may launch one graph

// Whether an address lies in the pool of some graph; the allocator is asked once a launch.
class Pools {
 public:
  bool hold(const void* address, uint64_t launch) {
    if (launch_ != launch) {
      segments_.clear();
      for (const auto& segment : c10_npu::NPUCachingAllocator::get()->snapshot().segments)
        if (segment.owner_private_pool_id != c10_npu::MempoolId_t{0, 0}) segments_.emplace_back(segment.address, segment.total_size);
      launch_ = launch;
    }
    const auto where = reinterpret_cast<int64_t>(address);
    for (const auto& [begin, size] : segments_)
      if (where >= begin && where < begin + size) return true;
    return false;
  }

 private:
  uint64_t launch_ = 0;
  std::vector<std::pair<int64_t, int64_t>> segments_;
};

Pools pools;  // under guards_lock

}  // namespace

MemoryGuards::MemoryGuards(const OpInfo& info, const torch::jit::Stack& arguments) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < info.arguments; i++) {
    if (!arguments[i].isTensor() && !arguments[i].isList()) continue;
    tensors.clear();
    collect_tensors(arguments[i], tensors);
    for (const auto& tensor : tensors) {
      if (!tensor.defined() || tensor.numel() == 0 || is_alias(tensor)) continue;
      const bool pinned = info.copies && is_pinned_host(tensor);
      if ((!pinned && !is_npu(tensor)) || !owns_memory(tensor, pinned)) continue;
      std::ostringstream text;
      text << info.argument_names[i] << ", " << type_name(tensor.scalar_type()) << tensor.sizes();
      guards_.push_back({tensor.storage().getWeakStorageImpl(), tensor.storage().data(), pinned, text.str()});
    }
  }
}

std::string MemoryGuards::problem(uint64_t launch) {
  std::lock_guard<std::mutex> lock(guards_lock);
  for (auto it = guards_.begin(); it != guards_.end();) {
    const auto storage = it->storage.lock();
    if (storage && storage->data() == it->address) {
      ++it;
    } else if (!it->pinned && pools.hold(it->address, launch)) {
      it = guards_.erase(it);  // memory of the graph's own, whoever else uses it in between
    } else {
      return "argument " + it->argument + (it->pinned ? ", in pinned host memory," : ",") + " was captured at an address that " +
             (storage ? "its storage has left since (it was resized or set to another)"
                      : "has been freed since: the program holds no tensor over it any more") +
             "; a replay would touch whatever lies there now. Keep the tensor as long as the graph, copy new values into it instead of "
             "making another, or allocate it inside the capture";
    }
  }
  return {};
}

}  // namespace ascend_sim
