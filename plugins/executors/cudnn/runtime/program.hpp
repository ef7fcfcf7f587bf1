// SPDX-License-Identifier: Apache-2.0
//
// A compiled network: its tensors, and its ops in the order of the forward pass. Activations are row-major (NCHW for
// images). If precision::channels_last is set, as it is for every precision but fp32, images are NHWC, except in the
// batch's inputs.
#pragma once

#include "../common/compiled_graph.hpp"
#include "kernels/element_functions.hpp"
#include "runtime/device.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <regatta/model.hpp>

namespace cudnn {

// An activation, for all samples of a batch. The model sets the addresses, before op::attach(); they never change.
struct value {
  std::string name;
  std::vector<std::size_t> shape; // shape of one sample
  dtype type = dtype::f32;        // inputs keep the engine's type, fp32 or int32, both of 4 bytes
  image_layout layout;            // the layout: dimension 0 of the shape is the channel, the others are spatial
  int input = -1;                 // number of the batch's input that it holds; -1: it is computed
  int node = -1;                  // the graph's node of which it is the output, or a copy of it; -1: none
  bool needs_gradient = false;
  value* alias = nullptr;   // the value whose memory it shares under another shape, earlier in program::values; or null
  void* data = nullptr;     // in device memory
  void* gradient = nullptr; // null if it needs no gradient

  std::size_t elements() const { return layout.elements(); } // per sample
  // Returns the data of an input of type int32.
  const std::int32_t* indices() const { return static_cast<const std::int32_t*>(data); }
};
// Return the number of positions of a sequence, and of features of each. Require a shape of two dimensions.
inline std::uint32_t positions(const value& v) {
  return static_cast<std::uint32_t>(v.shape[0]);
}
inline std::uint32_t features(const value& v) {
  return static_cast<std::uint32_t>(v.shape[1]);
}

// A tensor of the model. `data` and `gradient` are fp32 in device memory, in canonical layout; with precision fp16 the
// gradient contains the loss scale. A state has no gradient (null). bind() may change the addresses, and a step may
// change those of a sparse table before it runs ops.
struct weight : executors::graph_tensor {
  explicit weight(executors::graph_tensor&& t) : graph_tensor(std::move(t)) {}
  // Whether there is a copy for GEMMs and convolutions, in the precision of the model; filters may be channels-last.
  // The model updates it in every forward pass, before the first op that uses the weight.
  bool copied = false;
  image_layout layout,
      copy_layout; // layout of a filter in `data` and in `copy`: [out channels] images of [in channels]
  void* copy = nullptr;
  // The op whose backward pass comes first and may overwrite the gradient; see op::adds().
  const class op* first_writer = nullptr;

  // Returns the address from which GEMMs and convolutions read the weight.
  const void* gemm_operand() const { return copied ? copy : data; }
};

// The arguments of a forward or backward pass, valid during the calls for that pass.
struct run {
  const rg_batch& batch;
  bool training = true;
  bool accumulate = false;  // add to the weights' gradients
  float loss_scale = 1;     // of fp16; else 1
  double* losses = nullptr; // training: one sum over the batch per loss, not divided; device memory
  double* sums = nullptr;   // evaluation: sums of the metrics, cleared before the pass; device memory
  // Returns the samples that count: in evaluation without the padding samples at the end of the batch.
  std::size_t samples() const { return training ? batch.samples : executors::valid_samples(batch); }
};

// An input of an op. `add`: the op adds its gradient to that of other ops; else it overwrites it.
struct edge {
  value* from;
  bool add = false;
};

class kernel_choices;

// One op of the network, which computes one value from others. The values and weights must outlive it.
class op {
public:
  op(std::string name, const std::vector<value*>& inputs, value* output) : name_(std::move(name)), output_(output) {
    for (value* v : inputs) inputs_.push_back({v});
  }
  virtual ~op() = default;
  op(const op&) = delete;
  op& operator=(const op&) = delete;

  // [main] Creates descriptors and the op's own buffers, reserves staging, and grows the device's scratch and workspace
  // to the size that this op needs. Called once, before attach(); values and weights have no memory yet. Throws
  // rg::error, RG_E_UNSUPPORTED, if the op is too large for its kernels.
  virtual void prepare(device&) {}
  // [main] Chooses kernels; may run them, overwrite activations and gradients, and grow the workspace. Called once,
  // after all ops are prepared and all values and weights have memory, in the order of the forward pass. Throws
  // rg::error, RG_E_UNSUPPORTED, if a library has no kernel. Addresses in the scratch and of values are final, but
  // those of weights are not.
  virtual void attach(device&, kernel_choices&) {}
  // [compute] Writes to the staging the data that changes from step to step, and checks the batch. Called before each
  // forward pass, for all ops before any of them runs. Throws rg::error: RG_E_OPERATION for bad input, RG_E_PLUGIN if
  // the engine did not provide a row of a sparse table that the batch reads.
  virtual void vary(const run&) {}
  // [compute] Enqueue a pass in the device's stream and return at once. Training captures them as CUDA graphs. So
  // forward() must enqueue the same work with the same arguments in every training step, and backward() in every one
  // with the same run::accumulate; data that changes is in the staging. backward() follows the forward pass in
  // training, in reverse order, if the output needs a gradient. It may overwrite the gradient of the output, writes
  // those of the inputs that have one (dx() not null), adds where edge::add is set, and writes or adds those of the
  // weights (adds()).
  virtual void forward(device& d, const run& r) = 0;
  virtual void backward(device& d, const run& r) = 0;
  // Returns the floating-point operations per sample of the forward and backward pass; a multiply-add counts as two.
  virtual double flops() const { return 0; }
  // Returns the bytes of the op's own buffers that must survive from the forward to the backward pass, for the report
  // of activation memory; 0 before prepare() and attach().
  virtual std::size_t held() const { return 0; }

  const std::string& name() const { return name_; }
  std::vector<edge>& inputs() { return inputs_; }
  value& output() { return *output_; }
  std::vector<weight*>& weights() { return weights_; }
  // Set by the compiler: samples per batch; and the graph's op from which this one was compiled, "conv2d". Nodes that
  // are fused into it, such as a ReLU, are not in `kind`.
  std::size_t batch = 0;
  std::string kind;

protected:
  // Addresses of input i, of its gradient (null: it needs none), of the output and of its gradient.
  const void* x(std::size_t i = 0) const { return inputs_[i].from->data; }
  void* dx(std::size_t i = 0) const { return inputs_[i].from->gradient; }
  void* y() const { return output_->data; }
  const void* dy() const { return output_->gradient; }
  std::size_t all() const { return batch * output_->elements(); } // elements of the output in a batch
  // Returns whether backward() must add to the gradient of w; else it must overwrite it.
  bool adds(const run& r, const weight& w) const { return r.accumulate || w.first_writer != this; }

  std::string name_;
  std::vector<edge> inputs_;
  value* output_;
  std::vector<weight*> weights_;
};

// A loss of the network, with its metric. In training forward() writes the sum of the batch's losses to
// run::losses[number]; in evaluation it adds to the metric's sums, from run::sums[first_sum] on. A derived class that
// overrides prepare() or vary() must do what these do.
class loss : public op, public executors::measured {
public:
  loss(std::string name, const std::vector<value*>& inputs, value* output, executors::metric m,
       executors::counted_labels counted = {})
      : op(std::move(name), inputs, output), measured(std::move(m), counted) {}
  void prepare(device& d) override { share_.reserve(d.varying, 1); }
  void vary(const run& r) override { set_share(r); }

protected:
  // Writes share_ to the staging, from vary().
  void set_share(const run& r) { *share_.host() = static_cast<float>(r.loss_scale / divisor(r.batch)); }
  staged<float> share_; // factor on the gradient of each counted sample or label: the loss scale / divisor()
};

// compile() fills in everything except `computes` and `batch`.
struct program : executors::compiled_graph {
  precision computes;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::unique_ptr<weight>> weights; // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;
};

// Compiles a graph into p, which must be empty except for p.computes and p.batch. Uses shapes only and needs no device;
// p does not refer to the graph afterwards. Throws rg::error: RG_E_UNSUPPORTED for an op or attribute that this
// executor lacks, RG_E_CONFIG for an inconsistent graph.
void compile(const rg_graph& graph, program& p);

} // namespace cudnn
