// SPDX-License-Identifier: Apache-2.0
//
// Mistakes: a model declares RG_MODEL_RELEASES, but reads a weight after done(), never calls done(), or calls need()
// twice in a pass. Caught by test `done`. `releases` is the same model without a mistake.
#include <regatta/model.hpp>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_model/linear_regression.cpp"
#pragma pop_macro("RG_PLUGIN")

namespace {

enum class mistake { none, reads, forgets, repeats };

template <mistake M> struct releases : linear_regression {
  using linear_regression::linear_regression;

  rg_model_info describe() {
    rg_model_info info = linear_regression::describe();
    info.flags |= RG_MODEL_RELEASES;
    return info;
  }
  void bind(const rg_model_memory& memory) {
    linear_regression::bind(memory);
    weight_ = rg::weights_of(memory, 1);
  }
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    if (M == mistake::repeats) {
      hooks.need(1);
      hooks.done(1);
      hooks.need(1);
      hooks.done(1);
    }
    rg_step_result result = linear_regression::step(batch, hooks); // one pass, with need() of tensors 0 and 1
    if (M == mistake::forgets) return result;
    hooks.done(0);
    hooks.done(1);
    if (M == mistake::reads) result.loss_sum += 0 * weight_[0];
    return result;
  }

private:
  float* weight_ = nullptr;
};

} // namespace

RG_PLUGIN("reads_after_done", "1.0", rg::model<releases<mistake::none>>("releases", "nothing wrong"),
          rg::model<releases<mistake::reads>>("reads_after_done", "broken: reads a weight after done()"),
          rg::model<releases<mistake::forgets>>("never_done", "broken: releases nothing"),
          rg::model<releases<mistake::repeats>>("needs_twice", "broken: needs a weight twice in a pass"))
