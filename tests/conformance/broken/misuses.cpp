// SPDX-License-Identifier: Apache-2.0
//
// The example model, each time breaking one rule of rg_hooks or of its memory.
#include <regatta/model.hpp>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_model/linear_regression.cpp"
#pragma pop_macro("RG_PLUGIN")

#include <limits>
#include <string>

namespace {

// Tensor 0 is bias, of 1 element, and tensor 1 is weight, of `features`.
struct misuses : linear_regression {
  struct parameters {
    std::int64_t features = 32;
    std::string how = "nothing";
    std::int64_t step = 0;
    bool early = false;
  };
  static constexpr auto fields =
      rg::fields(rg::field("features", &parameters::features, "numbers that a sample has"),
                 rg::field("how", &parameters::how, "the rule that is broken")
                     .one_of("nothing", "ready_99", "need_99", "backwards", "first_only", "never_ready", "behind_bias",
                             "behind_weight", "before_bias", "behind_state", "nan_gradient", "nan_loss"),
                 rg::field("step", &parameters::step, "first step that breaks it"),
                 rg::field("early", &parameters::early, "calls ready() before the last micro-batch, too"));

  misuses(const rg_host* host, const parameters& p, const rg_model_setup& setup)
      : linear_regression(host, {p.features}, setup), p_(p) {}

  rg_model_info describe() {
    rg_model_info info = linear_regression::describe();
    if (p_.how != "behind_state") return info;
    tensors_.assign(info.tensors, info.tensors + info.tensor_count);
    extra_.state("mean", {5});
    tensors_.push_back(extra_.tensors().front());
    info.tensors = tensors_.data();
    info.tensor_count = static_cast<std::uint32_t>(tensors_.size());
    return info;
  }

  void bind(const rg_model_memory& memory) {
    linear_regression::bind(memory);
    bias_ = rg::gradients_of(memory, 0);
    weight_ = rg::gradients_of(memory, 1);
    if (p_.how == "behind_state") state_ = rg::weights_of(memory, 2);
  }
  rg_step_result step(rg_batch batch, const rg::hooks& hooks) {
    if (batch.step < static_cast<std::uint64_t>(p_.step)) return linear_regression::step(batch, hooks);
    const bool last = batch.flags & RG_BATCH_LAST;
    if (p_.how == "need_99") hooks.need(99);
    batch.flags &= ~static_cast<std::uint32_t>(RG_BATCH_LAST);
    rg_step_result result = linear_regression::step(batch, hooks);
    if (p_.how == "behind_bias") std::fill_n(bias_ + 1, 20, 1.0F);
    if (p_.how == "behind_weight") std::fill_n(weight_ + p_.features, 20, 1.0F);
    if (p_.how == "before_bias") bias_[-3] = 1;
    if (p_.how == "behind_state") state_[5] = 1;
    if (p_.how == "nan_gradient") weight_[2] = std::numeric_limits<float>::quiet_NaN();
    if (p_.how == "nan_loss") result.loss_sum = std::numeric_limits<double>::quiet_NaN();
    if (!last && p_.early) hooks.ready(0);
    if (!last || p_.how == "never_ready") return result;
    if (p_.how == "first_only") {
      hooks.ready(0);
      return result;
    }
    if (p_.how == "ready_99") hooks.ready(99);
    hooks.ready(1);
    if (p_.how == "backwards") hooks.ready(0);
    return result;
  }

private:
  parameters p_;
  rg::description extra_;
  std::vector<rg_tensor> tensors_; // with a state behind those of the example
  float *bias_ = nullptr, *weight_ = nullptr, *state_ = nullptr;
};

} // namespace

RG_PLUGIN("broken_misuses", "1.0", rg::model<misuses>("misuses", "broken: against a rule of hooks or memory"))
