// SPDX-License-Identifier: Apache-2.0
//
// A compiled network: its tensors, and its ops in the order of the forward pass. Activations are row-major (NCHW for
// images); in reduced precision images are channels-last (NHWC).
#pragma once

#include "../common/compiled_graph.hpp"
#include "device.hpp"
#include "elements.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <regatta/model.hpp>

namespace cudnn {

// An activation, for all samples of a batch.
struct value {
  std::string name;
  std::vector<std::size_t> shape; // shape of one sample
  number type = number::f32;      // inputs keep the engine's type, fp32 or int32, both of 4 bytes
  picture lies;
  int input = -1;            // number of the batch's input that it holds; -1: it is computed
  class op* maker = nullptr; // the op that computes it; null for an input or an alias
  bool needs_gradient = false;
  value* alias = nullptr;   // the value whose memory it shares under another shape; precedes it
  void* data = nullptr;     // in device memory
  void* gradient = nullptr; // null if it needs no gradient

  std::size_t elements() const { return lies.elements(); }
  const std::int32_t* indices() const { return static_cast<const std::int32_t*>(data); }
};
// Positions of a sequence.
inline std::uint32_t places(const value& v) {
  return static_cast<std::uint32_t>(v.shape[0]);
}
inline std::uint32_t features(const value& v) {
  return static_cast<std::uint32_t>(v.shape[1]);
}

// A tensor of the model: fp32 in device memory, canonical layout. In fp16 its gradient still contains the loss scale.
struct weight : executors::graph_tensor {
  explicit weight(executors::graph_tensor&& t) : graph_tensor(std::move(t)) {}
  // The copy that GEMMs and convolutions read: in the precision of the model; filters are channels-last.
  bool copied = false;
  picture lies, copy_lies;
  void* copy = nullptr;
  // The op that overwrites the gradient in a backward pass; other ops that share the weight add to it.
  const class op* first_writer = nullptr;

  const void* multiplied() const { return copied ? copy : data; }
};

// The arguments of a forward or backward pass.
struct run {
  const rg_batch& batch;
  bool training = true;
  bool accumulate = false;  // add to the weights' gradients
  float loss_scale = 1;     // of fp16; else 1
  double* losses = nullptr; // training: one sum over the batch per loss, not divided; device memory
  double* sums = nullptr;   // evaluation: sums of the metrics, cleared before the pass; device memory
  std::size_t samples() const { return training ? batch.samples : executors::valid_samples(batch); }
};

// An input of an op. `add`: the op adds its gradient to that of other ops; else it overwrites it.
struct edge {
  value* from;
  bool add = false;
};

class choices;

class op {
public:
  op(std::string name, const std::vector<value*>& inputs, value* output) : name_(std::move(name)), output_(output) {
    for (value* v : inputs) inputs_.push_back({v});
  }
  virtual ~op() = default;
  op(const op&) = delete;
  op& operator=(const op&) = delete;

  // [main] Creates descriptors and the op's own buffers, and reserves staging. Called once, before attach(), when the
  // device and the batch size are known.
  virtual void prepare(device&) {}
  // [main] Called once, after all ops are prepared and all values have memory. Chooses kernels.
  virtual void attach(device&, choices&) {}
  // [compute] Writes to the staging the data that changes from step to step, and checks the batch. Called before the
  // forward pass; no work of this step has been launched yet. Throws rg::error, RG_E_OPERATION, for bad input.
  virtual void vary(const run&) {}
  virtual void forward(device& d, const run& r) = 0;
  virtual void backward(device& d, const run& r) = 0;
  virtual double flops() const { return 0; } // per sample, forward and backward
  // Returns the bytes of the op's own buffers that must survive from the forward to the backward pass. Requires
  // prepare().
  virtual std::size_t held() const { return 0; }

  const std::string& name() const { return name_; }
  std::vector<edge>& inputs() { return inputs_; }
  value& output() { return *output_; }
  std::vector<weight*>& weights() { return weights_; }
  std::size_t batch = 0;

protected:
  const void* x(std::size_t i = 0) const { return inputs_[i].from->data; }
  void* dx(std::size_t i = 0) const { return inputs_[i].from->gradient; }
  void* y() const { return output_->data; }
  const void* dy() const { return output_->gradient; }
  std::size_t all() const { return batch * output_->elements(); }
  bool adds(const run& r, const weight& w) const { return r.accumulate || w.first_writer != this; }

  std::string name_;
  std::vector<edge> inputs_;
  value* output_;
  std::vector<weight*> weights_;
};

// A loss of the network, with its metric.
class loss : public op, public executors::measured {
public:
  loss(std::string name, const std::vector<value*>& inputs, value* output, executors::metric m,
       executors::counted_labels counted = {})
      : op(std::move(name), inputs, output), measured(std::move(m), counted) {}
  void prepare(device& d) override { share_.ask(d.varying, 1); }
  void vary(const run& r) override { set_share(r); }

protected:
  void set_share(const run& r) { *share_.host() = static_cast<float>(r.loss_scale / divisor(r.batch)); }
  staged<float> share_; // weight of one row in the gradient: the loss scale / divisor
};

struct program : executors::compiled_graph {
  precision computes;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::unique_ptr<weight>> weights; // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;
};

// Compiles a graph into p. Uses shapes only and needs no device. Throws rg::error, RG_E_UNSUPPORTED, for an op that
// this executor lacks.
void compile(const rg_graph& graph, program& p);

} // namespace cudnn
