// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_updates.hpp"

#include "base/failure.hpp"

#include <fmt/format.h>
#include <regatta/abi.h>

namespace regatta {

bool is_server(std::uint32_t role) {
  if (role != RG_ROLE_WORKER && role != RG_ROLE_SERVER)
    throw failure(exit_code::plugin, fmt::format("role {}: expected RG_ROLE_WORKER or RG_ROLE_SERVER", role));
  return role == RG_ROLE_SERVER;
}

weight_updates::weight_updates(const optimizer_config& config, std::uint32_t workers,
                               const std::vector<optimizer_slice>& slices, processor& unit, device* d)
    : device_(d), worker_(std::make_unique<optimizer>(config, workers, slices, unit)),
      server_(std::make_unique<optimizer>(config, workers, slices, unit)) {}

template <class F> void weight_updates::mark(bool as_server, F&& f) {
  constexpr std::size_t most = 600; // of three steps; the device keeps only a limited number of timing marks
  const bool marks = device_ && device_->has_timing_marks() && !as_server && spans_.size() < most;
  const rg_fence from = marks ? device_->mark(device::computing) : 0;
  f();
  if (marks) spans_.push_back({from, device_->mark(device::computing)});
}

void weight_updates::apply(bool as_server, std::uint64_t first, std::span<const float> gradient, std::uint64_t step) {
  mark(as_server, [&] { role(as_server).apply(first, gradient, step); });
}

void weight_updates::commit(bool as_server, const arithmetic::norm& total, std::uint64_t step) {
  mark(as_server, [&] { role(as_server).commit(total, step); });
}

void weight_updates::collect_spans(std::vector<device::span>& out) {
  out.clear();
  out.swap(spans_);
}

} // namespace regatta
