// SPDX-License-Identifier: Apache-2.0
//
// A compiled network: tensors, and ops in the order in which they run. Everything is canonical: samples, channels,
// height, width, in fp32.
#pragma once

#include "device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <regatta/model.hpp>

namespace cudnn {

// An activation of the whole batch.
struct value {
  std::size_t channels = 1, height = 1, width = 1; // of a sample
  int input = -1;                                  // number of the batch's input it stands for
  bool needs_gradient = false;
  float* data = nullptr;     // on the device
  float* gradient = nullptr; // null where none is needed

  std::size_t spatial() const { return height * width; }
  std::size_t elements() const { return channels * spatial(); }
};

// A tensor of the model. The engine keeps it on the host; here is what the device has of it.
struct weight {
  rg_tensor info{};
  std::string name;
  std::uint32_t graph_index = 0; // random numbers are drawn by this
  std::uint32_t index = 0;       // in rg_model_info
  std::size_t elements = 1;
  float *host = nullptr, *host_gradient = nullptr;
  buffer data, gradient;
  const class op* first_writer = nullptr; // of its gradient in a backward pass; other ops that share it add
};

// What a step hands its ops.
struct run {
  const rg_batch& batch;
  bool training = true;
  double* sums = nullptr; // evaluation
};

// An input of an op, and whether its gradient is added to what others left there.
struct edge {
  value* from;
  bool add = false;
};

class op {
public:
  op(std::string name, const std::vector<value*>& inputs, value* output) : name_(std::move(name)), output_(output) {
    for (value* v : inputs) inputs_.push_back({v});
  }
  virtual ~op() = default;
  op(const op&) = delete;
  op& operator=(const op&) = delete;

  // The device and the batch are known: descriptors, algorithms, memory of its own.
  virtual void prepare(device&, std::size_t batch) { batch_ = batch; }
  virtual void forward(device& d, const run& r) = 0;
  virtual void backward(device& d, const run& r) = 0;
  virtual double flops() const { return 0; } // of a sample, forward and backward

  const std::string& name() const { return name_; }
  std::vector<edge>& inputs() { return inputs_; }
  value& output() { return *output_; }
  std::vector<weight*>& weights() { return weights_; }

protected:
  const float* x() const { return inputs_[0].from->data; }
  float* dx() const { return inputs_[0].from->gradient; }
  std::size_t batch_ = 0;
  bool adds(const run& r, const weight& w) const {
    return (r.batch.flags & RG_BATCH_ACCUMULATE) || w.first_writer != this;
  }

  std::string name_;
  std::vector<edge> inputs_;
  value* output_;
  std::vector<weight*> weights_;
};

// The op that a network ends in: the loss, and the metric "top1".
class cross_entropy;

struct program {
  std::size_t batch = 0;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::pair<value*, value*>> aliases; // the first has the memory of the second, which comes before it
  std::vector<std::unique_ptr<weight>> weights;   // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;
  cross_entropy* loss = nullptr;
  std::vector<std::string> input_names;
  std::vector<rg_input> inputs;
  std::string unit;
};

// Makes a program of the graph: shapes and order alone, without a device. Throws rg::error, RG_E_UNSUPPORTED for an op
// that is not here.
void compile(const rg_graph& graph, program& p);

} // namespace cudnn
