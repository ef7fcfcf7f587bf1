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

  // [main] Within the constructor or compile(). See rg_step_collectives.reserve.
  void reserve(std::uint64_t count) const {
    if (table_.reserve) table_.reserve(table_.context, count);
  }

  // [compute] Within step(). Replaces each number by its sum over all workers, and blocks until it is there. Throws
  // rg::error, which must leave step(). `name`, see rg_step_collectives.all_reduce.
  void all_reduce(const char* name, std::span<double> numbers) const {
    if (!table_.all_reduce) return;
    const rg_status s = table_.all_reduce(table_.context, name, numbers.data(), numbers.size());
    if (s != RG_OK) throw error(s, std::string("the sum over all workers failed: ") + name);
  }

private:
  rg_step_collectives table_{};
};

} // namespace rg
