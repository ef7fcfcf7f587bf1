// SPDX-License-Identifier: Apache-2.0
//
// A compiled network as a model; regatta/model.hpp specifies the member functions.
#pragma once

#include "memory_plan.hpp"
#include "program.hpp"

namespace onednn {

class model {
public:
  model(const rg_host* host, const rg_graph& graph, const rg_model_setup& setup);

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
  // Arguments for the engine's hooks around an op.
  struct marks {
    std::vector<std::uint32_t> needs; // weights that this op is the first to read
    std::int64_t ready = -1;          // the last weight whose gradient this op completes; -1: none
  };

  void prepare_to_run(const rg_model_setup& setup);
  void name_layout();
  void enter(const rg_batch& batch, const char* what);
  void add_gradient(const edge& e) const;
  void convert(const desc& from, const float* in, const desc& to, float* out);

  program program_;
  bool runs_ = false, bound_ = false;
  aligned_bytes memory_;
  std::size_t memory_bytes_ = 0;
  std::vector<marks> marks_;   // by op
  std::vector<double> losses_; // of a step, by loss
  std::string layout_, kernels_;
};

} // namespace onednn
