// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_sums.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

step_sums::step_sums(transfers& t, region_table& regions, const rg_cluster& c, std::uint64_t most)
    : transfers_(t), worker_(static_cast<std::uint32_t>(c.worker)), workers_(c.workers), most_(most),
      all_(regions.allocate_on_host(RG_F64, most * c.workers, "the sums within a step")),
      numbers_(regions.elements<double>(all_)) {}

rg_buffer step_sums::of(std::uint32_t worker, std::uint64_t count) const {
  rg_buffer b = all_;
  b.offset += worker * most_ * sizeof(double);
  b.count = count;
  return b;
}

// A worker's rank is its number.
void step_sums::begin(std::span<const double> mine) {
  if (mine.size() > most_)
    throw failure(exit_code::plugin,
                  fmt::format("the model sums {} numbers over the workers, but has reserved {}", mine.size(), most_));
  std::ranges::copy(mine, numbers_.begin() + static_cast<std::ptrdiff_t>(worker_ * most_));
  tally_.received = 0;
  for (std::uint32_t w = 0; w < workers_; ++w)
    if (w != worker_) transfers_.recv(0, w, lane, of(w, mine.size()), false, 0, &tally_);
  for (std::uint32_t w = 0; w < workers_; ++w)
    if (w != worker_) transfers_.send(0, w, lane, of(worker_, mine.size()), 0, &tally_);
}

void step_sums::end(std::span<double> sums) {
  if (tally_.received != sums.size_bytes() * (workers_ - 1))
    throw failure(exit_code::plugin, "the models of the workers sum different numbers in a step");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = 0;
    for (std::uint32_t w = 0; w < workers_; ++w) sums[i] += numbers_[w * most_ + i];
  }
}

} // namespace regatta
