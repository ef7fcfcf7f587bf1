// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/processor.hpp"
#include "memory/regions.hpp"
#include "memory/selection.hpp"

#include <memory>
#include <vector>

namespace regatta {

// The processor of the host's memory. allocate() and allocate_shared() return zeroed memory, aligned to 64 bytes, which
// this object owns; they throw failure (run) if there is not enough. All work is complete when a call returns, and the
// ranges of copy() may overlap. run() returns false if an index lies outside the target, and throws failure (plugin)
// for GATHER_ROWS and SCATTER_ROWS. A SELECT that finds more than index_count elements only sets *found, to 2^64 - 1;
// the contents of index are then undefined. One call at a time.
class host_processor final : public processor {
public:
  void* allocate(std::uint64_t bytes) override;
  void* allocate_shared(std::uint64_t bytes) override { return allocate(bytes); }
  bool run(const rg_work& work) override;
  void copy(void* to, const void* from, std::uint64_t bytes) override;

private:
  selection::scratch selection_;                            // for top-k
  std::vector<std::unique_ptr<void, aligned_free>> memory_; // all that was allocated
};

} // namespace regatta
