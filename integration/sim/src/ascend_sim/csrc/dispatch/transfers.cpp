#include "transfers.h"

#include <list>
#include <mutex>
#include <string_view>

#include "alias.h"
#include "order.h"

namespace ascend_sim {
namespace {

struct Transfer {
  at::Tensor host;      // keeps the memory from being handed out again, as torch_npu's allocator of pinned memory does
  at::Tensor arriving;  // to the host: the values; undefined: from the host
  uint64_t digest;      // of the bytes of `host` that must not change
  sim_place place;
  const OpInfo* info;
};

std::mutex transfers_lock;
std::list<Transfer> transfers;

uint64_t digest_of(const at::Tensor& tensor) {
  const auto dense = tensor.contiguous();
  return std::hash<std::string_view>()({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()});
}

// Values that stand out: the program must not use them.
void spoil(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  if (at::isFloatingType(type) || at::isComplexType(type)) tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  else if (type == at::kLong) tensor.fill_(std::numeric_limits<int64_t>::min());
  else if (type == at::kInt) tensor.fill_(std::numeric_limits<int32_t>::min());
  else if (type == at::kShort) tensor.fill_(std::numeric_limits<int16_t>::min());
  else if (type == at::kChar || type == at::kByte) tensor.fill_(0x5b);
}

std::string describe(const Transfer& transfer) {
  std::ostringstream text;
  text << transfer.info->name << " on " << sim_order_name(transfer.place) << (transfer.arriving.defined() ? " to" : " from")
       << " pinned host memory, " << type_name(transfer.host.scalar_type()) << transfer.host.sizes() << " at byte "
       << transfer.host.storage_offset() * static_cast<int64_t>(transfer.host.element_size()) << " of the storage at "
       << transfer.host.storage().data();
  return text.str();
}

// What is wrong with a transfer, or nothing; afterwards the host sees it.
std::string finish(Transfer& transfer) {
  c10::InferenceMode inference(true);
  std::string problem;
  if (digest_of(transfer.host) != transfer.digest)
    problem = "unordered: the host wrote to memory that a copy was still using (" + describe(transfer) +
              "); nothing orders the host behind the copy. Wait for it first (record an event behind the copy and synchronise with it), "
              "or write to another buffer";
  if (transfer.arriving.defined()) transfer.host.copy_(transfer.arriving);
  return problem;
}

template <class Due>
std::string finish_those(Due due) {
  std::string problem;
  std::lock_guard<std::mutex> guard(transfers_lock);
  for (auto it = transfers.begin(); it != transfers.end();) {
    if (!due(*it)) {
      ++it;
      continue;
    }
    auto found = finish(*it);
    if (problem.empty()) problem = std::move(found);
    it = transfers.erase(it);
  }
  return problem;
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.storage().data() == b.storage().data();
}

at::Tensor host_side(const OpInfo& info, const c10::IValue* arguments) {
  at::Tensor found;
  for (int i = 0; i < info.arguments && !found.defined(); i++)
    if (arguments[i].isTensor() && !is_alias(arguments[i].toTensor()) && is_pinned_host(arguments[i].toTensor()))
      found = arguments[i].toTensor();
  return found;
}

}  // namespace

void before_transfer(const OpInfo& info, const c10::IValue* arguments) {
  if (!info.copies) return;
  const auto host = host_side(info, arguments);
  if (!host.defined() || host.numel() == 0) return;
  const auto problem = finish_those([&](const Transfer& earlier) {
    if (!share_memory(earlier.host, host)) return false;
    return sim_order_is_before(earlier.place) || (!earlier.arriving.defined() && digest_of(earlier.host) != earlier.digest);
  });
  TORCH_CHECK(problem.empty(), problem);
}

void after_transfer(const OpInfo& info, const c10::IValue* arguments) {
  if (!info.copies || info.non_blocking < 0 || !arguments[info.non_blocking].toBool()) return;
  const auto host = host_side(info, arguments);
  if (!host.defined() || host.numel() == 0) return;
  c10::InferenceMode inference(true);
  const bool arrives = arguments[0].toTensor().is_same(host);
  Transfer transfer{host, {}, 0, sim_order_here(), &info};
  if (arrives) {
    transfer.arriving = host.clone();
    spoil(host);
  }
  transfer.digest = digest_of(host);
  std::lock_guard<std::mutex> guard(transfers_lock);
  transfers.push_back(std::move(transfer));
}

int settle_transfers() {
  const auto problem = finish_those([](const Transfer& transfer) { return sim_order_host_knows(transfer.place) != 0; });
  if (problem.empty()) return 0;
  sim_report(problem.c_str());
  return 507011;  // ACL_ERROR_RT_MODEL_EXECUTE
}

void abandon_transfers() {
  finish_those([](const Transfer&) { return true; });
}

}  // namespace ascend_sim
