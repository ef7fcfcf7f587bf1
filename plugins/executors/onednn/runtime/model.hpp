// SPDX-License-Identifier: Apache-2.0
//
// A compiled network as a model of the engine; regatta/model.hpp specifies the public member functions.
#pragma once

#include "runtime/memory_plan.hpp"
#include "runtime/program.hpp"

#include <regatta/ext/graph.h>
#include <regatta/trace.hpp>

namespace onednn {

// Must not be moved: ops refer to its device. Functions that compute set the calling thread's number of OpenMP threads.
class model {
public:
  // Compiles the graph, which is not read afterwards. Throws rg::error, RG_E_CONFIG or RG_E_UNSUPPORTED, for a graph or
  // a setup that this executor or CPU cannot run, std::bad_alloc, and dnnl::error where oneDNN fails. With
  // RG_PURPOSE_INIT activations get no memory, and only describe(), init(), canonical(), from_canonical(), metric(),
  // count() and kernels(), which returns null, may be called.
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
    std::vector<std::uint32_t> needs;    // weights that this op is the first to read
    std::vector<std::uint32_t> releases; // weights that this op is the last to read
    std::int64_t ready = -1;             // the last weight whose gradient this op completes; -1: none
  };

  // Chooses kernels, which may time candidates, and allocates all memory.
  void prepare_to_run(const rg_model_setup& setup);
  void name_layout();
  // Begins the call `what`: checks the batch, and points values and sparse tables to its inputs and rows.
  void enter(const rg_batch& batch, const char* what);
  // Runs `f`, the part `pass` ("forward" or "backward") of op k, with a span in a step that is traced.
  template <class F> void run_op(std::size_t k, const char* pass, F&& f) const;
  // Adds the buffer that the edge has to itself (edge::own is set) to the value's gradient.
  void add_gradient(const edge& e) const;
  // Copies a tensor from `in`, with layout `from`, to `out`, with layout `to`. Returns when it is done.
  void convert(const desc& from, const float* in, const desc& to, float* out);

  program program_;
  bool runs_ = false, bound_ = false;
  aligned_bytes memory_;
  std::size_t memory_bytes_ = 0;
  std::vector<marks> marks_; // by op
  rg::tracer trace_;
  std::vector<const char*> names_; // by op, for trace_
  std::vector<double> losses_;     // the last step's sums over the batch, by loss
  std::string layout_, kernels_;
};

} // namespace onednn
