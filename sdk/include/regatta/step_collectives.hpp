// SPDX-License-Identifier: Apache-2.0
//
// rg::step_collectives, through which a model or an executor sums numbers over all workers within a step
// (ext/step_collectives.h).
#pragma once

#include <regatta/ext/step_collectives.h>
#include <regatta/plugin.hpp>

#include <cstdint>
#include <span>

namespace rg {

class step_collectives {
public:
  // `host`, which may be null, must outlive this object. Without the extension workers() is 1, and the other functions
  // do nothing.
  explicit step_collectives(const rg_host* host = nullptr) {
    const void* table = host && host->extension ? host->extension(host->context, RG_EXT_STEP_COLLECTIVES) : nullptr;
    if (table) table_ = copy_versioned(*static_cast<const rg_step_collectives*>(table));
  }

  std::uint32_t workers() const noexcept { return table_.all_reduce ? table_.workers : 1; }

  // [main] Within the constructor or compile(). Declares that this instance calls all_reduce(), with at most `count`
  // numbers at once; the largest of several counts holds. Ranks whose models reserve different counts refuse to start.
  void reserve(std::uint64_t count) const {
    if (table_.reserve) table_.reserve(table_.context, count);
  }

  // [compute] Within step(), on all workers, for the same sums in the same order. Replaces each number by its sum over
  // all workers, and blocks until it is there. `name` says in messages what is summed. Throws rg::error, which must
  // leave step(), if a peer died, if a worker passes another count, or if the count is greater than the reserved one.
  void all_reduce(const char* name, std::span<double> numbers) const {
    if (!table_.all_reduce) return;
    const rg_status s = table_.all_reduce(table_.context, name, numbers.data(), numbers.size());
    if (s != RG_OK) throw error(s, std::string("the sum over all workers failed: ") + name);
  }

private:
  rg_step_collectives table_{};
};

} // namespace rg
