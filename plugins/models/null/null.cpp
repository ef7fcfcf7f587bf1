// SPDX-License-Identifier: Apache-2.0
//
// A model without arithmetic: a step takes only the time of the engine, the strategy and the transport.
#include <regatta/model.hpp>

#include <algorithm>

namespace {

class null_model {
public:
  struct parameters {
    std::int64_t tensors = 16;
    std::int64_t bytes = 65536;
  };
  static constexpr auto fields =
      rg::fields(rg::field("tensors", &parameters::tensors, "number of weight tensors").range(1, 1000000),
                 rg::field("bytes", &parameters::bytes, "size of each of them, rounded up to whole elements")
                     .range(4, 1e12)
                     .unit(RG_UNIT_BYTES));

  null_model(const rg_host*, const parameters& p, const rg_model_setup& setup) : batch_(setup.batch) {
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
  std::uint64_t batch_;
  rg::description described_;
};

} // namespace

RG_PLUGIN("null", "0.1.0", rg::model<null_model>("null", "no arithmetic: measures the engine"))
