// SPDX-License-Identifier: Apache-2.0
//
// A compiled network as a model of regatta/model.hpp. Where the engine keeps weights and gradients on the device, kernels
// read and write them there, ordered by fences, and the host never waits within a step. Where they are the host's, the
// device has copies: weights are brought when the engine says that they are there, gradients returned layer by layer as
// they are final. Rows of sparse tables are the host's in any case: those of a step come before it, all at once, and
// their gradients go after it.
#pragma once

#include "choices.hpp"
#include "fences.hpp"
#include "intake.hpp"
#include "loss_scale.hpp"
#include "program.hpp"
#include "recording.hpp"

#include <array>
#include <optional>

namespace cudnn {

class model {
public:
  // Throws rg::error, RG_E_UNSUPPORTED without a GPU, whatever the purpose: a run is refused before it starts.
  model(const rg_host* host, const rg_graph& graph, const rg_model_setup& setup);
  ~model();

  rg_model_info describe();
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out);
  void bind(const rg_model_memory& memory);
  void rows(const rg_batch& batch, std::span<rg_rows> out);
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks);
  void evaluate(const rg_batch& batch, std::span<double> sums);
  double metric(std::span<const double> sums) const { return program_.metric(sums); }
  void count(const rg_batch& batch, std::span<std::uint64_t> counts) const { program_.count(batch, counts); }
  void canonical(std::uint32_t tensor, const float* memory, float* out);
  void from_canonical(std::uint32_t tensor, const float* canonical, float* memory);
  const char* kernels();

private:
  // What the engine is asked and told around an op.
  struct marks {
    std::vector<weight*> needs; // first read by it
    std::int64_t ready = -1;    // the last weight whose gradient it finishes
  };
  // Ops between two moments at which the engine is asked or told something: those of a bucket's weights.
  struct part {
    std::size_t first, last; // of ops, last one included
    std::int64_t ready;      // the last weight whose gradient the backward pass finishes here
    recording ahead{};
    std::array<recording, 2> back{}; // of a pass that overwrites gradients, of one that adds to them
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
  void divide(const rg::hooks& hooks);
  void enter(const run& r, const char* what);
  void fetch(const weight& w, rg_fence after);
  void convert(const weight& w);
  void forward(const part& p, const run& r);
  void backward(const part& p, const run& r);
  template <class F> void give(recording& r, const F& launch);
  void finish(const weight& w, const run& r);
  void unscale(const executors::graph_tensor& w, std::size_t elements, const run& r);
  void take_tables(const run& r);
  void make_room(executors::graph_tensor& w, std::size_t bytes);
  void give_tables(const run& r);
  void learn_scale();

  const rg_host* host_;
  std::optional<device> device_; // outlives all that has memory there
  program program_;
  std::optional<fences> fences_, timed_fences_; // the latter around passes
  buffer memory_;                               // of all values
  std::vector<place> places_;                   // by weight
  std::vector<marks> marks_;                    // by op
  std::vector<part> parts_;                     // in the order of the forward pass; made in the first step
  std::size_t memory_bytes_ = 0;
  std::string report_, choices_report_, refused_; // refused: why a step is not captured
  buffer losses_, sums_, flag_; // of all losses and their sum; evaluation; whether a gradient was not finite
  staged<double> factors_;      // of the losses in their sum
  staged<float> unscaled_;      // 1 / the loss scale
  std::vector<double> host_sums_;
  outcome* outcomes_ = nullptr;
  std::array<rg_fence, outcomes> passed_{}; // when an outcome is there
  std::uint64_t steps_ = 0, learned_ = 0;   // begun; whose outcome the loss scale knows
  loss_scale scale_;
  std::optional<intake> intake_;
  bool bound_ = false, on_device_ = false;
  bool captures_;            // steps
  bool inputs_kept_ = false; // those of the last step are still there
};

} // namespace cudnn
