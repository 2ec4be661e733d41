#include "fresh.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StorageImpl.h>

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include "alias.h"
#include "torch_npu/csrc/core/NPUStorageImpl.h"

namespace ascend_sim {
namespace {

constexpr size_t kMaxDevices = 64;
constexpr size_t kScalar = 16;  // bytes; a kernel that is given a number first makes a tensor of it

c10::Allocator* host = nullptr;            // torch's own for CPU memory
c10::DeleterFnPtr npu_deleter = nullptr;

thread_local bool armed = false;           // the next allocation is served by the NPU's allocator
thread_local c10::DeviceIndex served_by = 0;
thread_local void* served = nullptr;       // what was served in this call, until it is freed or becomes a result

// Served memory that a kernel kept beyond its call (in a cache, say).
std::mutex kept_lock;
std::unordered_set<void*> kept;
std::atomic<size_t> kept_count{0};

bool forget_kept(void* pointer) {
  if (!kept_count.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> guard(kept_lock);
  if (!kept.erase(pointer)) return false;
  kept_count--;
  return true;
}

void release_served(void* pointer) {
  if (served == pointer) served = nullptr;
  else forget_kept(pointer);
  npu_deleter(pointer);
}

// oneDNN allocates and frees without a DataPtr.
void release_raw(void* pointer) {
  if (pointer && (served == pointer || forget_kept(pointer))) release_served(pointer);
  else host->raw_deleter()(pointer);
}

class CpuAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (C10_LIKELY(!armed) || bytes <= kScalar) return host->allocate(bytes);
    armed = false;
    auto memory = c10::GetAllocator(kNpu)->allocate(bytes);
    npu_deleter = memory.get_deleter();
    served_by = memory.device().index();
    served = memory.release_context();
    return {served, served, release_served, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release_raw; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override { default_copy_data(destination, source, bytes); }
};

// An empty tensor per device, with and without inference mode, whose copies become the results: torch_npu's classes
// cannot be constructed from outside. Never freed: they would outlive the device.
std::array<std::array<std::atomic<c10::TensorImpl*>, kMaxDevices>, 2> prototypes;

c10::TensorImpl* prototype(c10::DeviceIndex device, bool inference) {
  auto& slot = prototypes[inference][static_cast<size_t>(device)];
  auto* known = slot.load(std::memory_order_acquire);
  if (C10_LIKELY(known != nullptr)) return known;
  c10::InferenceMode mode(inference);
  auto* made = at::empty({0}, at::TensorOptions().device(c10::Device(kNpu, device))).unsafeReleaseTensorImpl();
  return slot.compare_exchange_strong(known, made) ? made : known;
}

aclFormat format_for(size_t dimensions) {  // as torch_npu chooses it
  return dimensions == 4 ? ACL_FORMAT_NCHW : dimensions == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_ND;
}

at::Tensor over(c10::DataPtr memory, size_t bytes, at::IntArrayRef sizes, at::IntArrayRef strides, caffe2::TypeMeta dtype,
                c10::DeviceIndex device) {
  static const auto make_storage = c10::GetStorageImplCreate(kNpu);
  auto storage = make_storage(c10::StorageImpl::use_byte_size_t(), static_cast<int64_t>(bytes), std::move(memory),
                              c10::GetAllocator(kNpu), /*resizable=*/true);
  auto& description = static_cast<torch_npu::NPUStorageImpl*>(storage.get())->npu_desc_;
  description.base_sizes_ = sizes;
  description.base_strides_ = strides;
  description.storage_sizes_ = sizes;
  description.origin_format_ = description.npu_format_ = format_for(sizes.size());
  description.data_type_ = dtype;
  const bool inference = c10::InferenceMode::is_enabled();
  auto impl = prototype(device, inference)
                  ->shallow_copy_and_detach(inference ? c10::VariableVersion(c10::VariableVersion::DISABLED) : c10::VariableVersion(0),
                                            /*allow_tensor_metadata_change=*/true);
  impl->set_storage_and_dtype(c10::Storage(std::move(storage)), dtype);
  impl->set_sizes_and_strides(sizes, strides);
  return at::Tensor(std::move(impl));
}

}  // namespace

void install_fresh_memory() {
  static CpuAllocator allocator;
  if (host) return;
  host = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

FreshMemory::FreshMemory(c10::DeviceIndex device, bool wanted) : outer_(served), outer_armed_(armed) {
  served = nullptr;
  armed = wanted && prototypes[0][static_cast<size_t>(device)].load(std::memory_order_acquire);
}

FreshMemory::~FreshMemory() {
  if (C10_UNLIKELY(served != nullptr)) {
    std::lock_guard<std::mutex> guard(kept_lock);
    kept.insert(served);
    kept_count++;
  }
  served = outer_;
  armed = outer_armed_;
}

at::Tensor FreshMemory::adopt(const at::Tensor& result) {
  if (!served || !result.has_storage()) return {};
  auto* storage = result.storage().unsafeGetStorageImpl();
  if (storage->data() != served || result.storage().use_count() != 1 || storage->nbytes() != result.nbytes() || result.storage_offset() != 0 ||
      !result.is_non_overlapping_and_dense())
    return {};
  auto memory = storage->set_data_ptr(c10::DataPtr());
  memory.release_context();
  c10::DataPtr owned(served, served, npu_deleter, c10::Device(kNpu, served_by));
  const auto bytes = storage->nbytes();
  served = nullptr;
  return over(std::move(owned), bytes, result.sizes(), result.strides(), result.dtype(), served_by);
}

at::Tensor empty_on_npu(at::IntArrayRef sizes, at::IntArrayRef strides, caffe2::TypeMeta dtype, c10::DeviceIndex device) {
  const auto bytes = at::detail::computeStorageNbytes(sizes, strides, dtype.itemsize());
  prototype(device, c10::InferenceMode::is_enabled());  // sets the device up
  return over(c10::GetAllocator(kNpu)->allocate(bytes), bytes, sizes, strides, dtype, device);
}

}  // namespace ascend_sim
