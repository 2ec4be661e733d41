// Which operators the simulation answers, and their installation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ascend_sim {

// Installs the boxed kernel for aten and c10d, for the references named, for custom operators of the namespaces to adopt
// (now and whenever one is registered), and the failing kernel for npu/atb operators without a reference. Returns how many.
int64_t install(const std::vector<std::string>& references, const std::vector<std::string>& adopted_namespaces);

// Operators of adopted namespaces registered since the last flush.
bool adoptions_pending();
void flush_adoptions();

}  // namespace ascend_sim
