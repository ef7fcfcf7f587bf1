// SPDX-License-Identifier: Apache-2.0
//
// A compiled network: tensors, and ops in the order in which they run. Activations are row-major, but pictures, which in
// reduced precision lie place by place (channels last).
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

// An activation of the whole batch.
struct value {
  std::string name;
  std::vector<std::size_t> shape; // of a sample
  number type = number::f32;      // inputs as they come: floats or whole numbers, both of 4 bytes
  picture lies;
  int input = -1;            // number of the batch's input it stands for
  class op* maker = nullptr; // null: it is an input, or another's memory
  bool needs_gradient = false;
  value* alias = nullptr;   // whose memory it has, as another shape; comes before it
  void* data = nullptr;     // on the device
  void* gradient = nullptr; // null where none is needed

  std::size_t elements() const { return lies.elements(); }
  const std::int32_t* indices() const { return static_cast<const std::int32_t*>(data); }
};
// Of a sequence.
inline std::uint32_t places(const value& v) {
  return static_cast<std::uint32_t>(v.shape[0]);
}
inline std::uint32_t features(const value& v) {
  return static_cast<std::uint32_t>(v.shape[1]);
}

// A tensor of the model: floats on the device, canonical. Gradients of fp16 still have the loss scale.
struct weight : executors::graph_tensor {
  explicit weight(executors::graph_tensor&& t) : graph_tensor(std::move(t)) {}
  // As it is multiplied: in the precision computed in, filters of pictures with their channels last.
  bool copied = false;
  picture lies, copy_lies;
  void* copy = nullptr;
  const class op* first_writer = nullptr; // of its gradient in a backward pass; other ops that share it add

  const void* multiplied() const { return copied ? copy : data; }
};

// What a step hands its ops.
struct run {
  const rg_batch& batch;
  bool training = true;
  bool accumulate = false;  // onto the weights' gradients
  float loss_scale = 1;     // fp16's
  double* losses = nullptr; // training: on the device, each one's sum over the batch, not divided
  double* sums = nullptr;   // evaluation: on the device, zeroed before
  std::size_t samples() const { return training ? batch.samples : executors::valid_samples(batch); }
};

// An input of an op, and whether its gradient is added to what others left there.
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

  // The device and the batch are known: descriptors, memory of its own, room in the staging.
  virtual void prepare(device&) {}
  // The memory of all values is there.
  virtual void attach(device&, choices&) {}
  // Writes what changes from step to step into the staging; checks what the batch holds. Nothing of the step runs yet.
  virtual void vary(const run&) {}
  virtual void forward(device& d, const run& r) = 0;
  virtual void backward(device& d, const run& r) = 0;
  virtual double flops() const { return 0; } // of a sample, forward and backward
  // Bytes of its own that it keeps from the forward to the backward pass, once prepared.
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

// An op that a network ends in: a loss and what it is measured by.
class loss : public op, public executors::measured {
public:
  loss(std::string name, const std::vector<value*>& inputs, value* output, executors::metric m,
       executors::counted_labels counted = {})
      : op(std::move(name), inputs, output), measured(std::move(m), counted) {}
  void prepare(device& d) override { share_.ask(d.varying, 1); }
  void vary(const run& r) override { set_share(r); }

protected:
  void set_share(const run& r) { *share_.host() = static_cast<float>(r.loss_scale / divisor(r.batch)); }
  staged<float> share_; // of a row in the gradient
};

struct program : executors::compiled_graph {
  precision computes;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::unique_ptr<weight>> weights; // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;
};

// Makes a program of the graph: shapes and order alone, without a device. Throws rg::error, RG_E_UNSUPPORTED for an op
// that is not here.
void compile(const rg_graph& graph, program& p);

} // namespace cudnn
