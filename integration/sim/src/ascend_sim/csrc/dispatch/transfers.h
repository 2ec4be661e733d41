// Copies between the device and pinned host memory, which on hardware take place while the host goes on.
//
// The check of stream order delays what the host sees of them: a copy to the host leaves a pattern behind that stands for
// "not here yet" until the host has waited for it, and a copy from the host remembers what it copied, to find out when the
// host has waited whether the memory was still the same.
#pragma once

#include <ATen/core/stack.h>

#include "op_info.h"

namespace ascend_sim {

// To be called by the work that copies: before and after it runs. `arguments`: as the CPU kernel gets them or as given.
// Throws if the host has changed memory that an earlier copy may still be using.
void before_transfer(const OpInfo& info, const c10::IValue* arguments);
void after_transfer(const OpInfo& info, const c10::IValue* arguments);

// Looks after the copies that the host has waited for. Returns an ACL error if the host changed memory too early.
int settle_transfers();

// Gives up: copies to the host arrive, copies from the host are not looked at any more.
void abandon_transfers();

}  // namespace ascend_sim
