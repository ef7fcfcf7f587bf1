// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/regions.hpp"
#include "runtime/transfers.hpp"

#include <cstdint>
#include <span>

#include <regatta/abi.h>

namespace regatta {

// Sums over all workers in the middle of a step (ext/step_collectives.h). A sum consists of begin(), rounds of
// strategy_host::poll() until done() returns true, and end(), which all workers call. Each worker sends its numbers to
// all others at once, and adds the numbers of all workers in ascending order of worker, so that the sums are
// bit-identical on all. [loop]
class step_sums {
public:
  static constexpr std::uint32_t lane = 0; // the most urgent one; the lanes of the strategy come after it

  // [main] Allocates memory for sums of up to `most` numbers. `t` and `regions` must outlive this object. Throws
  // failure (run) if there is not enough memory or the transport cannot use it.
  step_sums(transfers& t, region_table& regions, const rg_cluster& c, std::uint64_t most);

  // Begins to send `mine` to all other workers and to receive theirs. Throws failure (plugin) if it has more than
  // `most` numbers.
  void begin(std::span<const double> mine);
  bool done() const noexcept { return tally_.pending == 0; } // all numbers are sent and received
  // Writes the sums; requires as many `sums` as begin() got numbers. Throws failure (plugin) if another worker sent
  // fewer.
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
