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
  // `workers` is the number of workers of the run, for lr_scaling. `slices` cover the arena: ascending, without gaps.
  // `unit` computes the updates; `d` is null if `unit` is the host, else the same object as `unit`. Both must outlive
  // this object. Throws failure (usage) for an unsupported configuration.
  weight_updates(const optimizer_config& config, std::uint32_t workers, const std::vector<optimizer_slice>& slices,
                 processor& unit, device* d);

  optimizer& role(bool as_server) { return as_server ? *server_ : *worker_; }
  bool deferred() const { return worker_->deferred(); } // equal in both roles
  // Updates elements [first, first + gradient.size()) of the arena with the learning rate of `step`. If deferred(),
  // only computes the gradient's norm; the gradient must then not change until commit(), and `step` is ignored. On a
  // device it only enqueues, and the gradient must not change before the device has executed it. Throws failure
  // (plugin) and changes nothing if the role does not own all elements (optimizer::own()).
  void apply(bool as_server, std::uint64_t first, std::span<const float> gradient, std::uint64_t step);
  // Executes the role's deferred updates with the learning rate of `step`, gradients scaled so that their norm is at
  // most optimizer.clip_norm; drops the updates if `total`, the norm over all ranks, is not finite. Requires
  // deferred().
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
  // Returns the bytes of the optimizer state of both roles, without that of sparse tables.
  std::uint64_t state_bytes() const { return worker_->state_bytes() + server_->state_bytes(); }

private:
  template <class F> void mark(bool as_server, F&& f); // calls f(); as worker, keeps its span on the device

  device* device_;
  std::unique_ptr<optimizer> worker_, server_;
  std::array<std::uint64_t, 2> ns_{}; // as worker, as server
  std::vector<device::span> spans_;
};

} // namespace regatta
