// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/regions.hpp"
#include "runtime/transfers.hpp"

#include <cstdint>
#include <span>

#include <regatta/abi.h>

namespace regatta {

// Sums over all workers in the middle of a step (ext/step_collectives.h). Each worker sends its numbers to all others,
// which takes one message time, and adds those of all in ascending order of worker. begin(), rounds of
// strategy_host::poll() until done(), and end() make a sum; [loop].
class step_sums {
public:
  static constexpr std::uint32_t lane = 0; // the most urgent; those of the strategy come after it

  // [main] Allocates memory for sums of up to `most` numbers. `t` and `regions` must outlive this object. Throws
  // failure as region_table::allocate() does.
  step_sums(transfers& t, region_table& regions, const rg_cluster& c, std::uint64_t most);

  // Sends `mine`. Throws failure (plugin) if they are more than `most`.
  void begin(std::span<const double> mine);
  bool done() const noexcept { return tally_.pending == 0; }
  // Writes the sums. Throws failure (plugin) if another worker sent fewer numbers.
  void end(std::span<double> sums);

private:
  rg_buffer of(std::uint32_t worker, std::uint64_t count) const;

  transfers& transfers_;
  std::uint32_t worker_, workers_;
  std::uint64_t most_;
  rg_buffer all_; // [worker][most]
  std::span<double> numbers_;
  transfers::tally tally_;
};

} // namespace regatta
