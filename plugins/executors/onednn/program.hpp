// SPDX-License-Identifier: Apache-2.0
//
// A compiled network: values (activations), weights, and ops in the order in which they run.
#pragma once

#include "../common/compiled_graph.hpp"
#include "kernels.hpp"
#include "row_kernels.hpp"

#include <regatta/model.hpp>

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onednn {

using desc = dnnl::memory::desc;
using tag = dnnl::memory::format_tag;

// Where a program runs and what its ops share.
struct device {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  const kernel_table* kernels = nullptr; // of the instruction set that oneDNN uses, too
  const row_kernels* rows = nullptr;     // likewise
  int threads = 1;
  bool half = false;            // computes in bf16
  std::byte* scratch = nullptr; // one for all ops, used by one at a time
  rg::logger log;

  dnnl::memory wrap(const desc& d, void* data = DNNL_MEMORY_NONE) const { return {d, engine, data}; }
  tag blocked() const { return kernels->lanes == 16 ? tag::nChw16c : tag::nChw8c; }
};

// How many blocks of `size` hold `n`: as many tasks are they. Rows of a sequence are taken so many at a time.
inline std::size_t blocks(std::size_t n, std::size_t size) {
  return (n + size - 1) / size;
}
inline constexpr std::size_t row_block = 16;

// Calls f(i) for i < tasks on the device's threads. What one of them throws (nothing may leave a parallel region) is
// thrown here, when all have ended.
template <class F> void parallel([[maybe_unused]] const device& d, std::size_t tasks, const F& f) {
#ifdef _OPENMP
  if (d.threads > 1 && tasks > 1) {
    std::exception_ptr thrown;
#pragma omp parallel for num_threads(d.threads) schedule(static)
    for (std::size_t i = 0; i < tasks; ++i) {
      try {
        f(i);
      } catch (...) {
#pragma omp critical(regatta_thrown)
        thrown = std::current_exception();
      }
    }
    if (thrown) std::rethrow_exception(thrown);
    return;
  }
#endif
  for (std::size_t i = 0; i < tasks; ++i) f(i);
}

// A piece of the planned memory; see memory_plan.hpp.
using slot = std::size_t;
inline constexpr slot no_slot = ~slot{0};

// An activation of the whole batch. Inputs are plain (row-major as they come); all else is blocked by channels, which
// for a vector of features is row-major with rows padded to whole blocks. Padding holds zeros or is never read.
struct value {
  std::string name;
  std::size_t channels = 1, height = 1, width = 1;
  bool plain = false;
  bool half = false;      // its elements, and those of its gradient, are of type bf16
  std::size_t stride = 0; // elements from sample to sample
  int input = -1;         // number of the batch's input it stands for
  bool needs_gradient = false;
  int consumers = 0;
  bool kept = false;         // read by its consumers in the backward pass, too
  float* data = nullptr;     // inputs: set at every step; see as()
  float* gradient = nullptr; // null where none is needed
  slot data_slot = no_slot, gradient_slot = no_slot;

  std::size_t spatial() const { return height * width; }
  std::size_t elements() const { return channels * spatial(); }
  std::size_t element_bytes() const { return half ? sizeof(bf16) : sizeof(float); }
  // Element i of what lies there: its data or gradient.
  void* at(float* memory, std::size_t i) const { return reinterpret_cast<std::byte*>(memory) + i * element_bytes(); }
};

// The memory of an activation as what it holds.
template <class T> T* as(float* data) {
  return reinterpret_cast<T*>(data);
}
template <class T> T* as(const float* data) {
  return reinterpret_cast<T*>(data);
}

// A tensor of the model, in the engine's memory.
struct weight : executors::graph_tensor {
  explicit weight(executors::graph_tensor&& t) : graph_tensor(std::move(t)) {}
  desc canonical, layout;
  const class op* first_writer = nullptr; // of its gradient in a backward pass; other ops that share it add
};

// What a step hands its ops.
struct run {
  const rg_batch* batch = nullptr;
  const rg::hooks* hooks = nullptr;
  bool training = true;
  bool accumulate = false;  // add to gradients
  double* losses = nullptr; // training: each one's sum over the batch, not divided
  double* sums = nullptr;   // evaluation: what all losses add up
};

// An input of an op and where its gradient goes.
struct edge {
  value* from = nullptr;
  float* gradient = nullptr; // null: not wanted
  bool add = false;          // the value has a gradient already; this one's is added to it
  bool own = false;          // `gradient` is a buffer of its own, which is then added to the value's
  slot buffer = no_slot;
};

class memory_plan;
class picks;

// The device, the batch and the choices, while ops get ready to run.
struct preparation {
  const device& dev;
  std::size_t batch;
  picks& choices;
};

// One fused operation. Constructed with shapes and layouts alone; prepare() builds what runs.
class op {
public:
  op(std::string name, const std::vector<value*>& inputs, value* output) : name_(std::move(name)), output_(output) {
    for (value* v : inputs) inputs_.push_back({.from = v});
  }
  virtual ~op() = default;
  op(const op&) = delete;
  op& operator=(const op&) = delete;

  // Builds primitives and times candidates. May allocate.
  virtual void prepare(const preparation&) {}
  // Marks what is kept for the backward pass and asks for memory of its own.
  virtual void plan(memory_plan&) {}
  // The memory is there: values have their pointers.
  virtual void attach(const memory_plan&) {}
  virtual void forward(run&) = 0;
  virtual void backward(run&) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  // May the output take the memory of input 0, and input 0's gradient that of the output's?
  virtual bool forward_in_place() const { return false; }
  virtual bool backward_in_place() const { return false; }
  // May it write the gradient of input 0 over what it reads there? Nobody else may read that then.
  virtual bool gradient_over_input() const { return false; }
  // Does it add to gradients itself where edge::add says so?
  virtual bool adds_gradients() const { return false; }
  virtual std::size_t in_place_input() const { return 0; } // whose gradient it is, the first of those wanted from here
  // Operations of the forward and backward pass of one sample, counted by the direct algorithm.
  virtual double flops() const { return 0; }
  // Adds "name: what runs" lines.
  virtual void report(std::string&) const {}

  const std::string& name() const { return name_; }
  std::vector<edge>& inputs() { return inputs_; }
  value& output() { return *output_; }
  std::vector<weight*>& weights() { return weights_; }

protected:
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
};

// The whole: what compile() makes of a graph.
struct program : executors::compiled_graph {
  device dev;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::unique_ptr<weight>> weights; // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;         // in the order of the forward pass
};

} // namespace onednn
