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

// The device of a program, and the resources that its ops share.
struct device {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  const kernel_table* kernels = nullptr; // for the instruction set that oneDNN uses
  const row_kernels* rows = nullptr;     // for the same instruction set
  int threads = 1;
  bool half = false;            // computes in bf16
  std::byte* scratch = nullptr; // shared by all ops, of which one runs at a time
  rg::logger log;

  dnnl::memory wrap(const desc& d, void* data = DNNL_MEMORY_NONE) const { return {d, engine, data}; }
  tag blocked() const { return kernels->lanes == 16 ? tag::nChw16c : tag::nChw8c; }
};

// Returns how many blocks of `size` elements hold `n` elements; each block is a task. Ops on sequences use blocks of
// row_block rows.
inline std::size_t blocks(std::size_t n, std::size_t size) {
  return (n + size - 1) / size;
}
inline constexpr std::size_t row_block = 16;

// Calls f(i) for i < tasks on the device's threads. If calls throw, rethrows one of the exceptions after all calls have
// ended: no exception may leave an OpenMP region.
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

// The number of a range in the planned memory; see memory_plan.hpp.
using slot = std::size_t;
inline constexpr slot no_slot = ~slot{0};

// An activation of the whole batch. Inputs and sequences are plain (row-major). All else is blocked by channels; a
// blocked vector of features is row-major with rows padded to whole blocks. Padding holds zeros or is never read.
struct value {
  std::string name;
  std::size_t channels = 1, height = 1, width = 1;
  bool plain = false;
  bool half = false;      // its elements and its gradient are of type bf16
  std::size_t stride = 0; // elements from sample to sample
  int input = -1;         // number of the batch's input that it stands for; -1: none
  bool needs_gradient = false;
  int consumers = 0;
  bool kept = false;         // read by its consumers in the backward pass, too
  float* data = nullptr;     // inputs: set at every step. bf16 if `half`: see as()
  float* gradient = nullptr; // null where none is needed
  slot data_slot = no_slot, gradient_slot = no_slot;

  std::size_t spatial() const { return height * width; }
  std::size_t elements() const { return channels * spatial(); }
  std::size_t element_bytes() const { return half ? sizeof(bf16) : sizeof(float); }
  // Address of element i of `memory`, which is the value's data or gradient.
  void* at(float* memory, std::size_t i) const { return reinterpret_cast<std::byte*>(memory) + i * element_bytes(); }
};

// Memory of an activation, with the type of its elements.
template <class T> T* as(float* data) {
  return reinterpret_cast<T*>(data);
}
template <class T> T* as(const float* data) {
  return reinterpret_cast<T*>(data);
}

// A tensor of the model; its memory belongs to the engine.
struct weight : executors::graph_tensor {
  explicit weight(executors::graph_tensor&& t) : graph_tensor(std::move(t)) {}
  desc canonical, layout;
  const class op* first_writer = nullptr; // the first to write its gradient in a backward pass; other ops add
};

// The arguments of a step or an evaluation for all ops.
struct run {
  const rg_batch* batch = nullptr;
  const rg::hooks* hooks = nullptr;
  bool training = true;
  bool accumulate = false;  // add to gradients
  double* losses = nullptr; // training: by loss, its sum over the batch
  double* sums = nullptr;   // evaluation: the sums to which every loss adds
};

// An input of an op, and where the op stores that input's gradient.
struct edge {
  value* from = nullptr;
  float* gradient = nullptr; // null: not wanted
  bool add = false;          // the value has a gradient already, to which this one is added
  bool own = false;          // `gradient` is a buffer of this edge; the model adds it to the value's gradient
  slot buffer = no_slot;
};

class memory_plan;
class picks;

// Arguments of op::prepare().
struct preparation {
  const device& dev;
  std::size_t batch;
  picks& choices;
};

// One fused operation. Calls come in this order: the constructor, which sets shapes and layouts; prepare(), plan(),
// attach(); then steps, each forward() and backward(), and evaluations, each forward().
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
  // Marks the values that are kept for the backward pass, and requests slots for the op itself.
  virtual void plan(memory_plan&) {}
  // Called once memory is assigned: reads the pointers of values and of the op's own slots.
  virtual void attach(const memory_plan&) {}
  virtual void forward(run&) = 0;
  virtual void backward(run&) = 0;
  virtual std::size_t scratch_bytes() const { return 0; }
  // Whether the output may use the memory of input 0; whether an input's gradient may use the memory of the output's
  // gradient.
  virtual bool forward_in_place() const { return false; }
  virtual bool backward_in_place() const { return false; }
  // Whether backward() may write the gradient of input 0 over the data of input 0, which then no other op reads.
  virtual bool gradient_over_input() const { return false; }
  // Whether backward() itself adds to an input's gradient where edge::add is set.
  virtual bool adds_gradients() const { return false; }
  virtual std::size_t in_place_input() const { return 0; } // of backward_in_place(): the first wanted from here on
  // Floating-point operations of the forward and backward pass for one sample, as the direct algorithm needs them.
  virtual double flops() const { return 0; }
  // Appends lines "name: kernel".
  virtual void report(std::string&) const {}

  const std::string& name() const { return name_; }
  std::vector<edge>& inputs() { return inputs_; }
  value& output() { return *output_; }
  std::vector<weight*>& weights() { return weights_; }

protected:
  // Whether backward() must add to the gradient of w instead of overwriting it.
  bool adds(const run& r, const weight& w) const { return r.accumulate || w.first_writer != this; }

  std::string name_;
  std::vector<edge> inputs_;
  value* output_;
  std::vector<weight*> weights_;
};

// A loss, in which a network ends, and its metric.
class loss : public op, public executors::measured {
public:
  loss(std::string name, const std::vector<value*>& inputs, value* output, executors::metric m,
       executors::counted_labels counted = {})
      : op(std::move(name), inputs, output), measured(std::move(m), counted) {}
};

// The result of compile().
struct program : executors::compiled_graph {
  device dev;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::unique_ptr<weight>> weights; // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;         // in the order of the forward pass
};

} // namespace onednn
