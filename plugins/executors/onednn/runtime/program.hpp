// SPDX-License-Identifier: Apache-2.0
//
// A compiled network: values (activations), weights, and ops in the order in which they run. One thread at a time uses
// it; ops spread their work over the device's threads with parallel().
#pragma once

#include "../common/compiled_graph.hpp"
#include "kernels/kernels.hpp"

#include <regatta/model.hpp>
#include <regatta/step_collectives.hpp>

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
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

// The device of a program, and the resources that its ops share. Ops keep references to it. model's constructor sets
// `kernels`, `threads`, `row_major`, `half`, `log` and `collectives` before compile(); plan_memory() sets `scratch`.
struct device {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  const kernel_table* kernels = nullptr; // for the instruction set that oneDNN uses
  int threads = 1;
  bool row_major = false;       // weights are row-major in memory, also where another layout is faster
  bool half = false;            // GEMMs and convolutions compute in bf16
  std::byte* scratch = nullptr; // shared by all ops, of which one runs at a time
  rg::logger log;
  rg::step_collectives collectives; // of the workers

  // Returns a oneDNN memory object over `data`, which it does not own. Without `data`, its address must be set before
  // use.
  dnnl::memory wrap(const desc& d, void* data = DNNL_MEMORY_NONE) const { return {d, engine, data}; }
  // The layout of images that are blocked by channels.
  tag blocked() const { return kernels->lanes == 16 ? tag::nChw16c : tag::nChw8c; }
};

// Returns how many blocks of `size` elements hold `n` elements, rounded up. Ops on sequences run one task per block of
// row_block rows.
inline std::size_t blocks(std::size_t n, std::size_t size) {
  return (n + size - 1) / size;
}
inline constexpr std::size_t row_block = 16;

// Calls f(i) for every i < tasks, on the device's threads at once, and returns when all calls have ended. If calls
// throw, the others still run, and one of the exceptions is rethrown at the end: no exception may leave an OpenMP
// region. On one thread the first exception ends the loop.
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

// The number of a range of bytes in a program's planned memory. memory_plan::request() returns it, and
// memory_plan::at_slot() its address.
using slot = std::size_t;
inline constexpr slot no_slot = ~slot{0};

// An activation of the whole batch. `dims` are those of one sample: channels, height and width of an image, positions
// and features of a sequence, or the features of a vector, with 1 for the others. Inputs and sequences are row-major
// (`plain`). All else is blocked by channels: [block][height][width][lane]; a blocked vector of features is row-major
// with rows padded to whole blocks. Padding holds zeros, or no result depends on it.
struct value {
  std::string name;
  std::array<std::size_t, 3> dims{1, 1, 1};
  bool plain = false;
  bool half = false;           // its elements and its gradient are of type bf16
  std::size_t stride = 0;      // elements from sample to sample
  int input = -1;              // number of the batch's input that it stands for; -1: none
  bool needs_gradient = false; // a weight with a gradient comes before it
  int consumers = 0;           // ops' inputs that refer to it
  bool kept = false;           // `data` lives until the backward passes of the consumers; op::plan() sets it
  bool kept_longer = false;    // `data` lives until the backward pass of the op that computes it; op::plan() sets it
  float* data = nullptr;       // inputs: set at every step. bf16 if `half`: see as()
  float* gradient = nullptr;   // null where none is needed
  slot data_slot = no_slot, gradient_slot = no_slot;

  // Of an image; a vector's features are its channels.
  std::size_t channels() const { return dims[0]; }
  std::size_t height() const { return dims[1]; }
  std::size_t width() const { return dims[2]; }
  std::size_t spatial() const { return dims[1] * dims[2]; }
  // Of a sequence.
  std::size_t positions() const { return dims[0]; }
  std::size_t features() const { return dims[1]; }
  std::size_t elements() const { return dims[0] * dims[1] * dims[2]; }
  std::size_t element_bytes() const { return half ? sizeof(bf16) : sizeof(float); }
  // Address of element i of `memory`, which is `data` or `gradient`.
  void* at(float* memory, std::size_t i) const { return reinterpret_cast<std::byte*>(memory) + i * element_bytes(); }
};

// Calls f(at, channel) for each block of every sample of a blocked image: `at` is the offset of the block's elements,
// `channel` that of its lanes in a vector of features.
template <class F> void for_channel_blocks(const device& d, std::size_t batch, const value& image, const F& f) {
  const std::size_t block = image.spatial() * d.kernels->lanes, blocks = image.stride / block;
  parallel(d, batch * blocks, [&](std::size_t i) { f(i * block, i * d.kernels->lanes); });
}

// Casts a value's `data` or `gradient` to the type of its elements, float or bf16.
template <class T> T* as(float* data) {
  return reinterpret_cast<T*>(data);
}
template <class T> T* as(const float* data) {
  return reinterpret_cast<T*>(data);
}

// A tensor of the model; the engine owns its memory. canonical: row-major by shape; layout: in the engine's memory, set
// by compile().
struct weight : executors::graph_tensor {
  explicit weight(executors::graph_tensor&& t) : graph_tensor(std::move(t)) {}
  desc canonical, layout;
  const class op* first_writer = nullptr; // the first op in a backward pass that writes its gradient; later ops add
};

// The arguments of a step or an evaluation for all ops. The pointers are valid during the step or evaluation.
struct run {
  const rg_batch* batch = nullptr;
  const rg::hooks* hooks = nullptr;
  bool training = true;
  bool accumulate = false;  // add to gradients
  double* losses = nullptr; // training: by loss, its sum over the batch
  double* sums = nullptr;   // evaluation: of all losses' metrics; each loss adds from its first_sum on
};

// An input of an op, and where the op stores that input's gradient. plan_memory() sets all but `from`.
struct edge {
  value* from = nullptr;
  float* gradient = nullptr; // null: not wanted
  bool add = false;          // an earlier op of the backward pass has written the value's gradient: this one is added
  bool own = false;          // `gradient` is a buffer of this edge alone, which the model then adds (`add` is set)
  slot buffer = no_slot;
};

class memory_plan;
class kernel_choices;

// Arguments of op::prepare(). `choices` is valid during the call only, `dev` as long as the op.
struct preparation {
  const device& dev;
  std::size_t batch;
  kernel_choices& choices;
};

// One fused operation. Calls come in this order: the constructor, which sets shapes and layouts; prepare(), plan() and
// attach(), once each; then steps, each forward() and then backward(), and evaluations, each forward(). Values and
// weights must outlive the op. Functions throw rg::error or dnnl::error.
class op {
public:
  op(std::string name, const std::vector<value*>& inputs, value* output) : name_(std::move(name)), output_(output) {
    for (value* v : inputs) inputs_.push_back({.from = v});
  }
  virtual ~op() = default;
  op(const op&) = delete;
  op& operator=(const op&) = delete;

  // Builds primitives, and chooses among kernels with preparation::choices, which may time them. May allocate.
  virtual void prepare(const preparation&) {}
  // Sets value::kept of the inputs and value::kept_longer of the output if backward() reads them, and requests slots
  // for the op itself. The memory of such an output may be reused for the gradient of an input, so backward() must read
  // the output's data before it writes that gradient. May allocate.
  virtual void plan(memory_plan&) {}
  // Called once memory is assigned: reads the pointers of values and of the op's own slots.
  virtual void attach(const memory_plan&) {}
  // Computes the output from the inputs.
  virtual void forward(run&) = 0;
  // Computes the gradients of the weights, see adds(), and those of the inputs of which edge::gradient is not null.
  // Called only if the output needs a gradient.
  virtual void backward(run&) = 0;
  // Bytes of device::scratch that forward() or backward() needs; valid after plan().
  virtual std::size_t scratch_bytes() const { return 0; }
  // Whether the output may use the memory of input 0.
  virtual bool forward_in_place() const { return false; }
  // Whether the gradient of this input may use the memory of the output's gradient. If several inputs may, it goes to
  // the first one whose gradient needs new memory.
  virtual bool backward_in_place(std::size_t /*input*/) const { return false; }
  // Whether backward() may write the gradient of input 0 over the data of input 0, which then no other op reads later.
  virtual bool gradient_over_input() const { return false; }
  // Whether backward() itself adds to an input's gradient where edge::add is set. Otherwise it overwrites, and the
  // model adds; see edge::own.
  virtual bool adds_gradients() const { return false; }
  // Returns the floating-point operations of forward and backward pass together for one sample, as the direct algorithm
  // needs them; 0 if they do not matter.
  virtual double flops() const { return 0; }
  // Appends a line "NAME: ALGORITHM IMPLEMENTATION\n" for each kernel that was chosen; kernel_choices reads these
  // lines.
  virtual void report(std::string&) const {}

  const std::string& name() const { return name_; }
  std::vector<edge>& inputs() { return inputs_; }
  value& output() { return *output_; }
  std::vector<weight*>& weights() { return weights_; }

protected:
  // Whether backward() must add to the gradient of w instead of overwriting it: gradients accumulate over
  // micro-batches, or another op has written it in this backward pass.
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

// The result of compile(). It must not be moved afterwards: ops refer to `dev`.
struct program : executors::compiled_graph {
  device dev;
  std::vector<std::unique_ptr<value>> values;
  std::vector<std::unique_ptr<weight>> weights; // in the order of rg_model_info
  std::vector<std::unique_ptr<op>> ops;         // in the order of the forward pass
};

} // namespace onednn
