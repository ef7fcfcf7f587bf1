// SPDX-License-Identifier: Apache-2.0
//
// A model that computes its steps itself: y = w x + b with squared error. Write a model like this if its computation is
// not a graph of layers; if it is one, see residual_mlp.cpp.
#include <regatta/model.hpp>
#include <regatta/random.hpp>

#include <algorithm>

namespace {

class linear_regression {
public:
  struct parameters {
    std::int64_t features = 32;
  };
  static constexpr auto fields =
      rg::fields(rg::field("features", &parameters::features, "features of a sample").range(1, 1 << 20));

  // [main] With setup.purpose == RG_PURPOSE_INIT the instance is only asked for shapes and initial weights, e.g. on a
  // server. Memory for activations is therefore allocated in bind().
  linear_regression(const rg_host*, const parameters& p, const rg_model_setup& setup)
      : features_(static_cast<std::size_t>(p.features)) {
    if (setup.precision != RG_F32 || setup.memory != RG_MEMORY_HOST)
      throw rg::error(RG_E_UNSUPPORTED, "it computes in fp32 on the CPU only: set train.precision = "
                                        "\"fp32\" and train.device = \"cpu\"");
    // Tensors are in the order in which their gradients become ready: strategies send from the front.
    described_.dense("bias", {1});
    described_.dense("weight", {p.features});
    described_.tensor(bias).decay = 0; // biases have no weight decay
    described_.values("x", {p.features});
    described_.values("y", {});
  }

  // [main] The memory that the info points to must live as long as the model.
  rg_model_info describe() {
    rg_model_info info = described_.info(); // ranks whose layouts differ refuse to start
    info.metric_sums = 2;                   // evaluate() adds to these, metric() reads their sum over all ranks
    info.metric = "mean_squared_error";
    info.unit = "samples";
    info.flops_per_sample = 4.0 * static_cast<double>(features_);
    return info;
  }

  // [main] The values depend on (seed, tensor, element) alone, so every rank starts with the same weights.
  void init(std::uint32_t tensor, std::span<const std::uint64_t>, std::uint64_t seed, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = tensor == bias ? 0.0F : 0.01F * rg::random_normals(seed, i / 4, tensor, rg::stream_init)[i % 4];
  }

  // [main] The memory of weights and gradients is the engine's and lives until the model ends. The arrays of pointers
  // are valid during this call only, so the pointers are copied.
  void bind(const rg_model_memory& memory) {
    for (const std::uint32_t tensor : {bias, weight}) {
      weights_[tensor] = rg::weights_of(memory, tensor);
      gradients_[tensor] = rg::gradients_of(memory, tensor);
    }
  }

  // [compute] Forward and backward pass.
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    // need() is called before a weight is first read: a strategy may still be pulling the weight.
    hooks.need(weight);
    hooks.need(bias);
    hooks.backward(); // both passes are one loop here; its time counts as backward pass

    float* const gradient = gradients_[weight];
    float& gradient_of_bias = *gradients_[bias];
    if (!(batch.flags & RG_BATCH_ACCUMULATE)) { // else a later micro-batch of the same step
      std::fill_n(gradient, features_, 0.0F);
      gradient_of_bias = 0;
    }
    // Gradients are divided by the global batch, so that strategies only have to add them.
    const float scale = 1.0F / static_cast<float>(batch.global_samples);
    double loss = 0;
    for (std::uint64_t s = 0; s < batch.samples; ++s) {
      const float* const x = sample(batch, s);
      const float error = predict(x) - target(batch, s);
      loss += 0.5 * error * error;
      for (std::size_t i = 0; i < features_; ++i) gradient[i] += scale * error * x[i];
      gradient_of_bias += scale * error;
    }
    // ready(i): the gradients of tensors 0..i are final, and this step reads their weights no more. With gradient
    // accumulation this holds in the last micro-batch only.
    if (batch.flags & RG_BATCH_LAST) hooks.ready(weight);
    rg_step_result result = {};
    result.loss_sum = loss; // a sum, not a mean: the engine divides
    result.count = batch.samples;
    return result;
  }

  // [compute] Only the first `valid` samples count: the last batch of a data set may have padding.
  void evaluate(const rg_batch& batch, std::span<double> sums) {
    for (std::uint64_t s = 0; s < batch.valid; ++s) {
      const double error = predict(sample(batch, s)) - target(batch, s);
      sums[0] += error * error;
      sums[1] += 1;
    }
  }
  double metric(std::span<const double> sums) { return sums[0] / sums[1]; } // [main]

private:
  enum : std::uint32_t { bias, weight }; // indices of the tensors

  const float* sample(const rg_batch& batch, std::uint64_t s) const {
    return static_cast<const float*>(batch.inputs[0]) + s * features_; // [samples, features]
  }
  static float target(const rg_batch& batch, std::uint64_t s) { return static_cast<const float*>(batch.inputs[1])[s]; }
  float predict(const float* x) const {
    float y = *weights_[bias];
    for (std::size_t i = 0; i < features_; ++i) y += weights_[weight][i] * x[i];
    return y;
  }

  std::size_t features_;
  rg::description described_;
  float *weights_[2] = {}, *gradients_[2] = {}; // by tensor
};

} // namespace

RG_PLUGIN("custom_regression", "1.0",
          rg::model<linear_regression>("linear_regression", "example: least squares, with a step of its own"))
