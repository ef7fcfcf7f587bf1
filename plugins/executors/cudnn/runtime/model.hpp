// SPDX-License-Identifier: Apache-2.0
//
// A compiled network as a model of regatta/model.hpp: the public functions have the contracts and contexts of
// rg_model's functions in regatta/abi/model.h. If the engine keeps weights and gradients on the device, kernels use
// them there, ordered by fences, and step() returns before the device has done its work. If the engine keeps them in
// host memory, the device has copies: weights are uploaded once the engine says that they are ready, and each gradient
// is downloaded once it is final. Rows of sparse tables are always in host memory: the rows of a step are uploaded
// before it, and their gradients are downloaded after it.
#pragma once

#include "runtime/fences.hpp"
#include "runtime/graph_capture.hpp"
#include "runtime/input_upload.hpp"
#include "runtime/loss_scale.hpp"
#include "runtime/op_check.hpp"
#include "runtime/program.hpp"
#include "tuning/kernel_choices.hpp"

#include <array>
#include <optional>

#include <regatta/ext/graph.h>

namespace cudnn {

class model {
public:
  // Compiles the graph, which is not referred to afterwards; `host` must outlive this object. Unless setup.purpose is
  // RG_PURPOSE_INIT, also allocates device memory and chooses kernels. Throws rg::error: RG_E_UNSUPPORTED without a GPU
  // (for RG_PURPOSE_INIT, too: a run must be refused before it starts), or if an op, its size, the precision or a
  // kernel of setup.kernel_choices is not supported; RG_E_CONFIG for an inconsistent graph, an empty batch or malformed
  // setup.kernel_choices; RG_E_OPERATION if memory runs out; RG_E_DEVICE for other errors of CUDA and its libraries.
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
  // The calls to the engine that an op requires: rg_hooks.need before its forward pass, rg_hooks.ready after its
  // backward pass.
  struct weight_use {
    std::vector<weight*> needs; // weights that no earlier op uses; the op's backward pass completes their gradients
    std::int64_t ready = -1;    // the highest index of a dense weight among `needs`, or -1
  };
  // Consecutive ops without a call to the engine between them: the ops of one bucket, or one op if the engine
  // keeps weights in host memory.
  struct part {
    std::size_t first, last; // numbers of ops, both included
    std::int64_t ready;      // the weight to report by rg_hooks.ready after this part's backward pass, or -1
    captured_graph forward_graph{};
    std::array<captured_graph, 2> backward_graphs{}; // [1] adds to the weights' gradients; [0] overwrites them
  };
  // The memory of a tensor beside the pointers that ops use.
  struct tensor_memory {
    // The engine's, if in host memory. Of a sparse table only host_gradient is set: that of the step's rows.
    float *host = nullptr, *host_gradient = nullptr;
    float* gradient = nullptr; // on the device, without the loss scale
    // data, own_gradient: of a sparse table, or if the engine keeps weights in host memory; else empty. scaled: in
    // fp16, the gradient with the loss scale. copy: weight::copy.
    buffer data, own_gradient, scaled, copy;
  };
  // The results of a call of step(), in pinned memory. Steps use several of them in turn, so that a step need not wait
  // for the previous one.
  struct outcome {
    double loss;
    std::uint32_t not_finite;
  };
  static constexpr std::size_t outcomes = 4;

  // Opens the device, allocates memory and chooses kernels; for the constructor.
  void prepare(const rg_graph& graph, const rg_model_setup& setup);
  // Allocates the memory of all values and their gradients.
  void allocate_values();
  // Allocates the copies for GEMMs, and memory for weights and gradients, which bind() releases if the engine keeps
  // them on the device.
  void allocate_weights();
  void find_weight_uses();
  // Sets parts_. A part ends where the engine waits for a gradient, or with every op if weights are in host memory.
  void divide(const rg::hooks& hooks);
  // Begins the call `what`: checks the batch and uploads all that the ops need from the host except weights.
  void enter(const run& r, const char* what);
  // Makes a weight available to later work of the stream, which may then read it and write its gradient: waits in the
  // stream for `after` if the engine keeps it on the device, else uploads it.
  void fetch(const weight& w, rg_fence after);
  // Updates weight::copy, if there is one.
  void convert(const weight& w);
  // Enqueue the ops of a part, or one op, with the work on their weights and gradients.
  void forward(const part& p, const run& r);
  void forward(op& o, const run& r);
  void backward(const part& p, const run& r);
  // Enqueues the work of `launch` by r.run() if steps are captured, else by a call of `launch`. Warns once if CUDA
  // refuses a capture.
  template <class F> void launch_or_replay(captured_graph& r, const F& launch);
  // Called after the op that completes the weight's gradient: removes the loss scale, and copies the gradient to the
  // host if the engine keeps it there.
  void finish(const weight& w, const run& r);
  // Writes `elements` elements of the gradient without the loss scale to tensor_memory::gradient; only with fp16.
  void unscale(const executors::graph_tensor& w, std::size_t elements, const run& r);
  // Uploads the rows of sparse tables that the batch provides.
  void upload_tables(const run& r);
  // Makes the window of a sparse table, and that of its gradients, at least `bytes` bytes long.
  void make_room(executors::graph_tensor& w, std::size_t bytes);
  // Enqueues the copies of the rows' gradients to the host, behind the backward pass.
  void download_tables(const run& r);
  // Updates the loss scale by the outcomes of the calls of step() that have ended; only with fp16.
  void learn_scale();

  const rg_host* host_;
  std::optional<device> device_; // declared before, so destroyed after, everything with device memory
  program program_;
  std::optional<fences> fences_, timed_fences_; // timed: for the fences around passes
  buffer memory_;                               // of all values
  std::vector<tensor_memory> memory_of_;        // by weight index
  std::vector<weight_use> weight_uses_;         // by op
  std::vector<part> parts_;                     // in the order of the forward pass; set up by the first step
  std::size_t memory_bytes_ = 0;
  std::string report_, choices_report_, refused_; // refused_: why steps are not captured
  buffer losses_, sums_, flag_; // all losses and then their sum; sums of evaluation; whether a gradient is not finite
  staged<double> factors_;      // one factor per loss in the sum of losses
  staged<float> unscaled_;      // 1 / the loss scale
  std::vector<double> host_sums_;
  outcome* outcomes_ = nullptr;
  std::array<rg_fence, outcomes> passed_{}; // pass once the outcome with this index is written
  std::uint64_t steps_ = 0, learned_ = 0;   // calls of step(); those of which the loss scale has used the outcome
  loss_scale scale_;
  std::optional<input_upload> upload_;
  bool bound_ = false, on_device_ = false;
  bool captures_;                 // steps are captured as CUDA graphs
  std::optional<op_check> check_; // with RG_DEBUG_SYNC
};

} // namespace cudnn
