// SPDX-License-Identifier: Apache-2.0
//
// The example model, each time with one defect.
#include <regatta/model.hpp>

#include <csignal>
#include <cstdlib>
#include <limits>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_model/linear_regression.cpp"
#pragma pop_macro("RG_PLUGIN")

namespace {

// Gives derived classes access to the gradients of the example.
struct opened : linear_regression {
  using linear_regression::linear_regression;
  void bind(const rg_model_memory& memory) {
    linear_regression::bind(memory);
    bias = rg::gradients_of(memory, 0);
    gradient = rg::gradients_of(memory, 1);
    count = 32;
  }
  // The step without its calls of ready(); say_ready() makes them.
  rg_step_result quiet_step(rg_batch batch, const rg::hooks& hooks) {
    batch.flags &= ~static_cast<std::uint32_t>(RG_BATCH_LAST);
    return linear_regression::step(batch, hooks);
  }
  static void say_ready(const rg_batch& batch, const rg::hooks& hooks) {
    if (batch.flags & RG_BATCH_LAST) hooks.ready(1);
  }
  float *bias = nullptr, *gradient = nullptr;
  std::size_t count = 0;
};

struct wrong_gradient : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    std::fill_n(gradient, count / 2, 0.0F);
    say_ready(batch, hooks);
    return result;
  }
};

// Defect: the loss has no terms.
struct counts_no_terms : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    rg_step_result result = linear_regression::step(batch, hooks);
    result.count = 0;
    return result;
  }
};

struct exits : opened {
  using opened::opened;
  rg_step_result step(const rg_batch&, const rg::hooks&) { std::_Exit(3); }
};

struct crashes : opened {
  using opened::opened;
  rg_step_result step(const rg_batch&, const rg::hooks&) {
    std::raise(SIGSEGV);
    return {};
  }
};

// Defect: a gradient is NaN, the loss is finite.
struct nan_in_bias : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    *bias = std::numeric_limits<float>::quiet_NaN();
    say_ready(batch, hooks);
    return result;
  }
};

struct five_percent_in_weight : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    for (std::size_t i = 0; i < count; ++i) gradient[i] *= 1.05F;
    say_ready(batch, hooks);
    return result;
  }
};

struct five_percent_in_bias : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    *bias *= 0.95F;
    say_ready(batch, hooks);
    return result;
  }
};

struct differs_a_little : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    gradient[0] *= 1 + 1e-6F * static_cast<float>(++calls_ % 2);
    say_ready(batch, hooks);
    return result;
  }
  std::uint64_t calls_ = 0;
};

struct allocates : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    scratch_ = std::vector<float>(10'000 + batch.samples);
    return linear_regression::step(batch, hooks);
  }
  std::vector<float> scratch_;
};

struct ready_too_early : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    hooks.need(1);
    hooks.need(0);
    say_ready(batch, hooks);
    return quiet_step(batch, hooks);
  }
};

struct never_asks : opened {
  using opened::opened;
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, rg::hooks(nullptr));
    say_ready(batch, hooks);
    return result;
  }
};

struct forgets_to_accumulate : opened {
  using opened::opened;
  rg_step_result step(rg_batch batch, const rg::hooks& hooks) {
    batch.flags &= ~static_cast<std::uint32_t>(RG_BATCH_ACCUMULATE);
    return linear_regression::step(batch, hooks);
  }
};

struct divides_by_its_own_batch : opened {
  using opened::opened;
  rg_step_result step(rg_batch batch, const rg::hooks& hooks) {
    batch.global_samples = batch.samples;
    return linear_regression::step(batch, hooks);
  }
};

struct starts_anyhow : opened {
  using opened::opened;
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    linear_regression::init(tensor, rows, seed + calls_++, out);
  }
  std::uint64_t calls_ = 0;
};

struct evaluates_afresh : opened {
  using opened::opened;
  void evaluate(const rg_batch& batch, std::span<double> sums) {
    std::fill(sums.begin(), sums.end(), 0.0);
    linear_regression::evaluate(batch, sums);
  }
};

// Defect: canonical() and from_canonical() apply the same permutation.
struct turns_twice : opened {
  using opened::opened;
  void canonical(std::uint32_t tensor, const float* memory, float* out) {
    const std::size_t n = tensor ? count : 1;
    for (std::size_t i = 0; i < n; ++i) out[i] = memory[(i + 1) % n];
  }
  void from_canonical(std::uint32_t tensor, const float* values, float* memory) { canonical(tensor, values, memory); }
};

// Has a sparse table. Defect: initial values of a row depend on its index in the call.
struct counts_rows : opened {
  using opened::opened;
  rg_model_info describe() {
    rg_model_info info = linear_regression::describe();
    all_.assign(info.tensors, info.tensors + info.tensor_count);
    extra_.table("table", 100, 4, 8);
    all_.push_back(extra_.tensors().front());
    info.tensors = all_.data();
    info.tensor_count = static_cast<std::uint32_t>(all_.size());
    return info;
  }
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    if (tensor + 1 < all_.size()) return linear_regression::init(tensor, rows, seed, out);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i);
  }
  rg::description extra_;
  std::vector<rg_tensor> all_;
};

// Supports bf16. Defect: doubles a gradient there.
struct doubles_in_bf16 : opened {
  doubles_in_bf16(const rg_host* host, const parameters& p, const rg_model_setup& setup)
      : opened(host, p, in_fp32(setup)), half_(setup.precision == RG_BF16) {}
  static rg_model_setup in_fp32(rg_model_setup setup) {
    if (setup.precision == RG_BF16) setup.precision = RG_F32;
    return setup;
  }
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const rg_step_result result = quiet_step(batch, hooks);
    for (std::size_t i = 0; i < count && half_; ++i) gradient[i] *= 2;
    say_ready(batch, hooks);
    return result;
  }
  bool half_;
};

} // namespace

RG_PLUGIN("broken_models", "1.0",
          rg::model<wrong_gradient>("wrong_gradient", "broken: half of the gradient is missing"),
          rg::model<counts_no_terms>("counts_no_terms", "broken: a loss of no terms"),
          rg::model<exits>("exits", "broken: ends the process in its step"),
          rg::model<crashes>("crashes", "broken: a crash in its step"),
          rg::model<nan_in_bias>("nan_in_bias", "broken: a gradient that is not a number"),
          rg::model<opened>("sound_regression", "nothing wrong: what the others are made of"),
          rg::model<five_percent_in_weight>("five_percent_in_weight", "broken: a gradient that is 5 % too large"),
          rg::model<five_percent_in_bias>("five_percent_in_bias", "broken: a bias's gradient that is 5 % too small"),
          rg::model<differs_a_little>("differs_a_little", "broken: other gradients every other time"),
          rg::model<allocates>("allocates", "broken: memory in every step"),
          rg::model<ready_too_early>("ready_too_early", "broken: gradients that are not there yet"),
          rg::model<never_asks>("never_asks", "broken: reads weights that may not be there yet"),
          rg::model<forgets_to_accumulate>("forgets_to_accumulate", "broken: keeps the last micro-batch only"),
          rg::model<divides_by_its_own_batch>("divides_by_its_own_batch", "broken: a mean of means"),
          rg::model<starts_anyhow>("starts_anyhow", "broken: other weights every time"),
          rg::model<turns_twice>("turns_twice", "broken: its canonical layout does not lead back"),
          rg::model<counts_rows>("counts_rows", "broken: a row's start depends on who asks for it with others"),
          rg::model<doubles_in_bf16>("doubles_in_bf16", "broken: counts a gradient twice in bf16"),
          rg::model<evaluates_afresh>("evaluates_afresh", "broken: forgets the batches before"))
