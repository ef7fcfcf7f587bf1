// SPDX-License-Identifier: Apache-2.0
//
// A compiled network as a model of regatta/model.hpp. Where the engine keeps weights and gradients on the device, kernels
// read and write them there, ordered by fences, and the host never waits within a step. Where they are the host's, the
// device has copies: weights are brought when the engine says that they are there, gradients returned layer by layer as
// they are final. Rows of sparse tables are the host's in any case.
#pragma once

#include "choices.hpp"
#include "fences.hpp"
#include "intake.hpp"
#include "loss_scale.hpp"
#include "program.hpp"

#include <array>
#include <optional>

namespace cudnn {

class model {
public:
  // Throws rg::error, RG_E_UNSUPPORTED without a GPU, whatever the purpose: a run is refused before it starts.
  model(const rg_graph& graph, const rg_model_setup& setup);
  ~model();

  rg_model_info describe();
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out);
  void bind(const rg_model_memory& memory);
  void rows(const rg_batch& batch, std::span<rg_rows> out);
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks);
  void evaluate(const rg_batch& batch, std::span<double> sums);
  double metric(std::span<const double> sums);
  void count(const rg_batch& batch, std::span<std::uint64_t> counts);
  void canonical(std::uint32_t tensor, const float* memory, float* out);
  void from_canonical(std::uint32_t tensor, const float* canonical, float* memory);
  const char* kernels();

private:
  // What the engine is asked and told around an op.
  struct marks {
    std::vector<weight*> needs; // first read by it
    std::int64_t ready = -1;    // the last weight whose gradient it finishes
  };
  // Where a tensor is beside what the ops see.
  struct place {
    float *host = nullptr, *host_gradient = nullptr; // where the engine's memory is the host's
    float* gradient = nullptr;                       // on the device, without the loss scale
    buffer data, own_gradient, scaled, copy;
  };
  // What a step leaves for the host: pinned, in turn, so that steps need not wait for each other.
  struct outcome {
    double loss;
    std::uint32_t not_finite;
  };
  static constexpr std::size_t outcomes = 4;

  void prepare(const rg_model_setup& setup);
  void allocate_values();
  void place_weights();
  void mark();
  void enter(const run& r, const char* what);
  void bring(weight& w, rg_fence after);
  void finish(weight& w, const run& r);
  void take_tables(const run& r);
  void learn_scale();

  std::optional<device> device_; // outlives all that has memory there
  program program_;
  std::optional<fences> fences_, timed_fences_; // the latter around passes
  buffer memory_;                               // of all values
  std::vector<place> places_;                   // by weight
  std::vector<marks> marks_;                    // by op
  std::vector<rg_tensor> tensors_;
  std::vector<weight*> tables_; // the sparse ones, in their order
  std::size_t memory_bytes_ = 0;
  std::string report_;

  buffer losses_, sums_, flag_; // of all losses and their sum; evaluation; whether a gradient was not finite
  staged<double> factors_;      // of the losses in their sum
  staged<float> unscaled_;      // 1 / the loss scale
  std::vector<double> host_sums_;
  outcome* outcomes_ = nullptr;
  std::array<rg_fence, outcomes> passed_{}; // when an outcome is there
  std::uint64_t steps_ = 0, learned_ = 0;   // begun; whose outcome the loss scale knows
  loss_scale scale_;
  std::optional<intake> intake_; // where weights are the device's
  bool bound_ = false, on_device_ = false;
  bool inputs_kept_ = false; // those of the last step are still there
};

} // namespace cudnn
