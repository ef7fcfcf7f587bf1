// SPDX-License-Identifier: Apache-2.0
//
// The optimizer's work of one rank on the arena, in both of its roles, and the time that it takes. [loop]
#pragma once

#include "device/device.hpp"
#include "optimizer/optimizer.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/clock.hpp>

namespace regatta {

class weight_updates {
public:
  // Computes on `unit`, which is `d` if that is not null. Both must outlive this object.
  weight_updates(const optimizer_config& config, std::uint32_t workers, const std::vector<optimizer_slice>& slices,
                 processor& unit, device* d);

  optimizer& role(bool as_server) { return as_server ? *server_ : *worker_; }
  bool deferred() const { return worker_->deferred(); }
  // Updates the weights from element `first` of the arena on.
  void apply(bool as_server, std::uint64_t first, std::span<const float> gradient, std::uint64_t step);
  // Executes the updates that wait for the norm `total` over all ranks.
  void commit(bool as_server, const arithmetic::norm& total, std::uint64_t step);

  // Calls f(), and adds the time that it takes on this thread to the role's update time. Work on a device counts only
  // with the time for enqueueing it.
  template <class F> auto measure(bool as_server, F&& f) {
    struct stopwatch {
      std::uint64_t& total;
      std::uint64_t begin = rg::now_ns();
      ~stopwatch() { total += rg::now_ns() - begin; }
    } const running{ns_[as_server]};
    return f();
  }
  // Returns the time that measure() has added since the start.
  std::uint64_t ns(bool as_server) const { return ns_[as_server]; }
  // Replaces `out` by the time spans of the worker's updates on the device since the last call, the first 600 of them;
  // empty if the device has no timing marks. The old memory of `out` is reused for the next spans.
  void collect_spans(std::vector<device::span>& out);
  std::uint64_t state_bytes() const { return worker_->state_bytes() + server_->state_bytes(); }

private:
  template <class F> void mark(bool as_server, F&& f); // calls f() and records its span on the device

  device* device_;
  std::unique_ptr<optimizer> worker_, server_;
  std::array<std::uint64_t, 2> ns_{}; // as worker, as server
  std::vector<device::span> spans_;
};

} // namespace regatta
