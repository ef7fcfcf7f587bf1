// SPDX-License-Identifier: Apache-2.0
//
// A model without arithmetic: a step takes only the time of the engine, the strategy and the transport, and a computing
// time that may be given.
#include <regatta/clock.hpp>
#include <regatta/model.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace {

class null_model {
public:
  struct parameters {
    std::int64_t tensors = 16;
    std::int64_t bytes = 65536;
    std::int64_t compute = 0;
    bool busy = true;
  };
  static constexpr auto fields =
      rg::fields(rg::field("tensors", &parameters::tensors, "number of weight tensors").range(1, 1000000),
                 rg::field("bytes", &parameters::bytes, "size of each of them, rounded up to whole elements")
                     .range(4, 1e12)
                     .unit(RG_UNIT_BYTES),
                 rg::field("compute", &parameters::compute,
                           "computing time of a micro-batch: a third in the forward pass, equally for each tensor")
                     .range(0, 3600e9)
                     .unit(RG_UNIT_NANOSECONDS),
                 rg::field("busy", &parameters::busy,
                           "computing keeps a core busy; false: it sleeps, so that more "
                           "workers than cores fit"));

  null_model(const rg_host*, const parameters& p, const rg_model_setup& setup)
      : batch_(setup.batch), compute_(p.compute), busy_(p.busy) {
    for (std::int64_t i = 0; i < p.tensors; ++i) described_.dense("tensor" + std::to_string(i), {(p.bytes + 3) / 4});
    described_.values("value", {});
  }

  rg_model_info describe() {
    rg_model_info info = described_.info();
    info.unit = "samples";
    info.flags = RG_MODEL_RELEASES;
    return info;
  }

  void init(std::uint32_t, std::span<const std::uint64_t>, std::uint64_t, std::span<float> out) {
    std::fill(out.begin(), out.end(), 0.0F);
  }
  void bind(const rg_model_memory&) {}

  // Does not write gradients: the engine supplies zeroed memory, and sums of zeros stay zero.
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const auto last = static_cast<std::uint32_t>(described_.tensors().size());
    if (compute_ > 0) {
      compute(hooks, last, batch.flags & RG_BATCH_LAST);
      return {.loss_sum = static_cast<double>(batch_), .count = batch_};
    }
    for (std::uint32_t i = last; i-- > 0;) {
      hooks.need(i);
      hooks.done(i);
    }
    hooks.backward();
    if (batch.flags & RG_BATCH_LAST)
      for (std::uint32_t i = 0; i < last; ++i) hooks.ready(i);
    return {.loss_sum = static_cast<double>(batch_), .count = batch_};
  }

private:
  // Takes the computing time. Each tensor has a deadline, so that sleeps that end late do not add up; the time that a
  // hook takes moves all deadlines.
  void compute(const rg::hooks& hooks, std::uint32_t tensors, bool gradients) const {
    const std::int64_t each = compute_ / (3 * std::int64_t{tensors});
    std::int64_t deadline = rg::steady_ns();
    for (std::uint32_t i = tensors; i-- > 0;) {
      const std::int64_t before = rg::steady_ns();
      hooks.need(i);
      deadline += rg::steady_ns() - before + each;
      hooks.done(i);
      pass_until(deadline);
    }
    const std::int64_t before = rg::steady_ns();
    hooks.backward();
    deadline += rg::steady_ns() - before;
    for (std::uint32_t i = 0; i < tensors; ++i) {
      deadline += 2 * each;
      pass_until(deadline);
      if (gradients) hooks.ready(i);
    }
  }
  void pass_until(std::int64_t deadline) const {
    if (!busy_)
      if (const std::int64_t left = deadline - rg::steady_ns(); left > 0)
        std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    while (rg::steady_ns() < deadline) {
    }
  }

  std::uint64_t batch_;
  std::int64_t compute_;
  bool busy_;
  rg::description described_;
};

} // namespace

RG_PLUGIN("null", "0.1.0", rg::model<null_model>("null", "no arithmetic: measures the engine"))
