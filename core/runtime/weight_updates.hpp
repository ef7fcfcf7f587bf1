// SPDX-License-Identifier: Apache-2.0
//
// The two optimizers of a rank: one updates the elements of the arena that it owns as a worker, the other those that it
// owns as a server. `as_server` selects one of them in all functions. Also measures the time of updates. [loop]
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
  // The arguments of optimizer's constructor, which throws failure (usage), for both roles. `d` is null on the host; on
  // a device, `unit` and `d` are the same object. `unit` and `d` must outlive this object.
  weight_updates(const optimizer_config& config, std::uint32_t workers, const std::vector<optimizer_slice>& slices,
                 processor& unit, device* d);

  // Returns the role's optimizer. Updates through it leave no span for collect_spans().
  optimizer& role(bool as_server) { return as_server ? *server_ : *worker_; }
  bool deferred() const { return worker_->deferred(); } // as optimizer::deferred(), which is equal in both roles
  // As optimizer::apply(): updates elements [first, first + gradient.size()) or, if deferred(), only computes their
  // norm and keeps them for commit(). Throws failure (plugin) if the role does not own them.
  void apply(bool as_server, std::uint64_t first, std::span<const float> gradient, std::uint64_t step);
  // As optimizer::commit(): executes the role's deferred updates, or drops them if `total` is not finite. Requires
  // deferred(). `total` is the norm of all gradients, over all ranks.
  void commit(bool as_server, const arithmetic::norm& total, std::uint64_t step);

  // Calls f(), returns its result, and adds its wall time to ns(as_server), also if it throws. apply() and commit() add
  // nothing themselves. Where f() enqueues work on a device, only the time of enqueueing is added.
  template <class F> auto measure(bool as_server, F&& f) {
    struct stopwatch {
      std::uint64_t& total;
      std::uint64_t begin = rg::now_ns();
      ~stopwatch() { total += rg::now_ns() - begin; }
    } const running{ns_[as_server]};
    return f();
  }
  // Returns the nanoseconds that measure() has added for this role since construction.
  std::uint64_t ns(bool as_server) const { return ns_[as_server]; }
  // Replaces the content of `out` by a pair of timing marks for each apply() and commit() as worker since the last call
  // (at most the first 600); empty without a device or timing marks. This object keeps the old memory of `out`.
  void collect_spans(std::vector<device::span>& out);
  // Returns the bytes of optimizer state of both roles, without that of sparse tables.
  std::uint64_t state_bytes() const { return worker_->state_bytes() + server_->state_bytes(); }

private:
  template <class F> void mark(bool as_server, F&& f); // calls f(); as worker, keeps its span on the device

  device* device_;
  std::unique_ptr<optimizer> worker_, server_;
  std::array<std::uint64_t, 2> ns_{}; // as worker, as server
  std::vector<device::span> spans_;
};

} // namespace regatta
