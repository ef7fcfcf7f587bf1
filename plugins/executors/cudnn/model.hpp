// SPDX-License-Identifier: Apache-2.0
//
// A compiled network as a model of regatta/model.hpp. The engine's weights and gradients are the host's: the device has
// copies, weights brought when the engine says that they are there, gradients returned layer by layer as they are final.
// So every strategy and every transport of the host's memory works; staging costs what the bus takes.
#pragma once

#include "ops.hpp"

#include <optional>

namespace cudnn {

class model {
public:
  // Throws rg::error, RG_E_UNSUPPORTED without a GPU, whatever the purpose: a run is refused before it starts.
  model(const rg_graph& graph, const rg_model_setup& setup);

  rg_model_info describe();
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out);
  void bind(const rg_model_memory& memory);
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks);
  void evaluate(const rg_batch& batch, std::span<double> sums);
  double metric(std::span<const double> sums);

private:
  // What the engine is asked and told around an op.
  struct marks {
    std::vector<weight*> needs; // first read by it
    std::int64_t ready = -1;    // the last weight whose gradient it finishes
  };
  void prepare(const rg_model_setup& setup);
  void mark();
  void enter(const rg_batch& batch, const char* what);
  void bring(const weight& w);

  std::optional<device> device_; // outlives all that has memory there
  program program_;
  buffer memory_;            // of all values
  std::vector<marks> marks_; // by op
  std::vector<rg_tensor> tensors_;
  bool bound_ = false;
};

} // namespace cudnn
