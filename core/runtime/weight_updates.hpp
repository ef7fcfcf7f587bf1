// SPDX-License-Identifier: Apache-2.0
//
// The two optimizers of a rank: of the arena's elements that it owns as a worker, and of those that it owns as a
// server; `as_server` selects one. Also measures the time of updates. [loop]
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

// Returns whether `role` (RG_ROLE_*) is the server's. Throws failure (plugin) for a number that is no role.
bool is_server(std::uint32_t role);

class weight_updates {
public:
  // Arguments and failures as of optimizer's constructor. `d` is null if `unit` is the host, else the same object as
  // `unit`. Both must outlive this object.
  weight_updates(const optimizer_config& config, std::uint32_t workers, const std::vector<optimizer_slice>& slices,
                 processor& unit, device* d);

  optimizer& role(bool as_server) { return as_server ? *server_ : *worker_; }
  bool deferred() const { return worker_->deferred(); } // equal in both roles
  // As optimizer::apply(): updates elements [first, first + gradient.size()); if deferred(), only computes the
  // gradient's norm, and the gradient must not change until commit().
  void apply(bool as_server, std::uint64_t first, std::span<const float> gradient, std::uint64_t step);
  // As optimizer::commit(): executes the role's deferred updates, or drops them if `total`, the norm over all ranks, is
  // not finite. Requires deferred().
  void commit(bool as_server, const arithmetic::norm& total, std::uint64_t step);

  // Calls f() and adds its wall time to ns(as_server); apply() and commit() add nothing themselves. Of work on a device
  // only the time of enqueueing is added.
  template <class F> auto measure(bool as_server, F&& f) {
    struct stopwatch {
      std::uint64_t& total;
      std::uint64_t begin = rg::now_ns();
      ~stopwatch() { total += rg::now_ns() - begin; }
    } const running{ns_[as_server]};
    return f();
  }
  // Returns the sum of measure() for this role since construction, in ns.
  std::uint64_t ns(bool as_server) const { return ns_[as_server]; }
  // Replaces the content of `out` by the device's begin and end marks of each apply() and commit() as worker since the
  // last call, at most the first 600; empty without timing marks. The next spans reuse the old memory of `out`.
  void collect_spans(std::vector<device::span>& out);
  std::uint64_t state_bytes() const { return worker_->state_bytes() + server_->state_bytes(); } // no sparse tables

private:
  template <class F> void mark(bool as_server, F&& f); // calls f(); as worker, keeps its span on the device

  device* device_;
  std::unique_ptr<optimizer> worker_, server_;
  std::array<std::uint64_t, 2> ns_{}; // as worker, as server
  std::vector<device::span> spans_;
};

} // namespace regatta
