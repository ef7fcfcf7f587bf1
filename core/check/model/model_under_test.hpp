// SPDX-License-Identifier: Apache-2.0
//
// A model as the engine holds it: compiled by an executor if it has a graph, with memory for weights, gradients and
// rows of sparse tables. An executor is tested with a small network of the suite.
#pragma once

#include "check/harness/suite.hpp"
#include "registry/plugin_host.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <new>
#include <numeric>
#include <vector>

#include <regatta/ext/graph.h>

namespace regatta::conformance {

// Arrays start at a cache line and are padded with zeros to the next one, as the engine's are. Guard bytes lie before
// each array, and behind its padding.
constexpr std::size_t cache_line = 64, guard_bytes = 128; // bytes
constexpr std::byte guard_byte{0xA7};

// Allocator of arrays with this padding and these guard bytes.
template <class T> struct aligned {
  using value_type = T;
  aligned() = default;
  template <class U> aligned(const aligned<U>&) noexcept {}
  static std::size_t padded(std::size_t n) { return (n * sizeof(T) + cache_line - 1) / cache_line * cache_line; }
  T* allocate(std::size_t n) {
    auto* const base =
        static_cast<std::byte*>(::operator new (padded(n) + 2 * guard_bytes, std::align_val_t{cache_line}));
    std::fill_n(base, guard_bytes, guard_byte);
    std::fill_n(base + guard_bytes, padded(n), std::byte{0});
    std::fill_n(base + guard_bytes + padded(n), guard_bytes, guard_byte);
    return reinterpret_cast<T*>(base + guard_bytes);
  }
  void deallocate(T* p, std::size_t) noexcept {
    ::operator delete (reinterpret_cast<std::byte*>(p) - guard_bytes, std::align_val_t{cache_line});
  }
  bool operator==(const aligned&) const noexcept { return true; }
};

// Returns "before" or "behind" if guard bytes or padding on that side of the array were overwritten, else null.
template <class T> const char* damage_of(const std::vector<T, aligned<T>>& v) {
  if (!v.capacity()) return nullptr;
  const auto* const first = reinterpret_cast<const std::byte*>(v.data());
  const auto all = [](const std::byte* from, const std::byte* to, std::byte value) {
    return std::all_of(from, to, [&](std::byte b) { return b == value; });
  };
  const std::byte* const end = first + aligned<T>::padded(v.capacity());
  if (!all(first - guard_bytes, first, guard_byte)) return "before";
  const bool intact =
      all(first + v.capacity() * sizeof(T), end, std::byte{0}) && all(end, end + guard_bytes, guard_byte);
  return intact ? nullptr : "behind";
}

using floats = std::vector<float, aligned<float>>;
using byte_array = std::vector<std::byte, aligned<std::byte>>;

// Returns the number of elements of an rg_tensor, or of one sample of an rg_input, in canonical layout.
template <class T> std::uint64_t elements_of(const T& t) {
  return std::accumulate(t.shape, t.shape + t.ndim, std::uint64_t{1}, std::multiplies<>());
}

// Returns a setup in host memory, with one thread and fixed kernels.
rg_model_setup setup_of(std::uint64_t batch, std::uint32_t purpose, std::uint32_t precision);

double dot(const floats& a, const floats& b); // inner product, in double; requires equal lengths
double norm(const floats& a);                 // L2, in double

// Generated samples `first` to first + count - 1 of the global batch.
struct samples {
  std::uint64_t first, count;
  std::vector<byte_array> inputs; // one for each input of the model: `count` samples in a row, then 64 bytes of padding
};

// Called when the model calls rg_hooks.need, ready, done or backward in a step, on the same thread. Each may be empty.
// `need` returns the status for the model; if it is empty, the status is RG_OK. If `done` is empty, rg_hooks.done is
// null.
struct step_hooks {
  std::function<rg_status(std::uint32_t tensor)> need;
  std::function<void(std::uint32_t tensor)> ready;
  std::function<void(std::uint32_t tensor)> done = {};
  std::function<void()> backward = {};
};

// The instance of a model, and its memory. Functions throw failed if a call of the plugin fails, and skipped if it
// returns RG_E_UNSUPPORTED. Before a step or an evaluation, call bind() once and prepare() for its samples.
class model_under_test {
public:
  static constexpr std::uint64_t step_number = 3; // rg_batch.step of every batch

  // `batch` is the number of samples in each call of step and evaluate. Throws skipped if the model cannot run on this
  // machine or no executor can compile it; failure if its description contradicts itself. `s` must outlive this object.
  model_under_test(const subject& s, std::uint64_t batch, std::uint32_t purpose = RG_PURPOSE_TRAIN,
                   std::uint32_t precision = RG_F32);
  // Compiles the graph with the executor s.tested, for training in fp32. Throws as the other constructor. `s` and
  // `graph` must outlive this object.
  model_under_test(const subject& s, const rg_graph& graph, std::uint64_t batch);
  ~model_under_test();
  model_under_test(const model_under_test&) = delete;
  model_under_test& operator=(const model_under_test&) = delete;

  const rg_model_info& info() const { return info_; }
  const std::vector<rg_tensor>& tensors() const { return tensors_; }
  const std::vector<rg_input>& inputs() const { return inputs_; }
  // Returns the row numbers of a sparse table that the last prepare() found, ascending.
  const std::vector<std::uint64_t>& rows(std::uint32_t tensor) const { return rows_[tensor]; }
  std::uint64_t seed() const { return subject_.seed; }
  bool has_state() const; // whether it has tensors of state, such as running statistics
  // Returns the executor that compiled it; null for a model without graph.
  const component* executor() const { return executor_; }
  // Returns the graph that it compiled. Requires executor(), and that no other graph was given to the constructor.
  const rg_graph& graph() const { return *source_.graph(graph_); }
  const rg_model& functions() const { return functions_; }
  void* self() const { return self_; }

  // Returns the initial values of a tensor that is not a sparse table, in the memory layout.
  floats initial(std::uint32_t tensor, std::uint64_t seed);
  // Allocates weights and gradients of all tensors but sparse tables, initialises the weights with the subject's seed,
  // and binds them. Call it once.
  void bind();

  // Generates samples from the subject's seed. A sample depends on the seed and its index in the global batch only.
  samples make_samples(std::uint64_t first, std::uint64_t count) const;
  // Collects counts and rows of sparse tables for the steps that follow, as the engine does. `parts` are the
  // micro-batches of a step, or the batches of its ranks. Call it before the first step and when the samples change: it
  // sets the rows' weights to their initial values and their gradients to 0. Throws failed if the model names wrong
  // rows.
  void prepare(const std::vector<const samples*>& parts);
  // Calls bind(), and prepares and returns the first `batch` samples of the global batch.
  samples start();
  // Runs a step on `part`, of a global batch of `global` samples, with RG_BATCH_* `flags`. Returns the plugin's status
  // and writes `result`. Throws failed if the step writes outside weights or gradients, or calls need(), ready() or
  // done() for a tensor that does not exist; no function of `hooks` is called for that one.
  rg_status try_step(const samples& part, std::uint64_t global, std::uint32_t flags, const step_hooks& hooks,
                     rg_step_result& result);
  // As try_step(), and throws failed for a status that is an error. Returns the result.
  rg_step_result step(const samples& part, std::uint64_t global, std::uint32_t flags, const step_hooks& hooks = {});
  // Runs a step on `part` as the whole batch, overwriting gradients. Returns the sum of the loss over its terms.
  double step(const samples& part) { return step(part, part.count, RG_BATCH_LAST).loss_sum; }
  // Evaluates the first `valid` samples and adds to `sums`, which has info().metric_sums elements.
  void evaluate(const samples& part, std::uint64_t valid, std::vector<double>& sums);
  // Returns the metric of these sums.
  double metric(const std::vector<double>& sums);

  // Weights and gradients in the memory layout, valid after bind() and, for sparse tables, prepare(): of a dense tensor
  // all, of a sparse table the prepared rows. State has no gradients.
  floats& weights(std::uint32_t tensor) { return weights_[tensor]; }
  floats& gradients(std::uint32_t tensor) { return gradients_[tensor]; }
  const std::vector<floats>& weights() const { return weights_; } // by tensor
  const std::vector<floats>& gradients() const { return gradients_; }
  // Returns the indices of the tensors that have gradients now.
  std::vector<std::uint32_t> trained() const;
  // Convert weights or gradients between the memory layout and the canonical one. Rows of sparse tables are the same in
  // both.
  floats canonical(std::uint32_t tensor, const floats& memory);
  floats from_canonical(std::uint32_t tensor, const floats& canonical);

  // Throws failed with the name of the function, the status and the plugin's text if the status is an error; skipped if
  // it is RG_E_UNSUPPORTED.
  void check(rg_status status, const char* function);

private:
  void require_in_bounds(const char* function) const;
  void compile(const rg_model_setup& setup);
  void read_description();
  rg_batch batch_of(const samples& part, std::vector<const void*>& inputs) const;

  const subject& subject_;
  plugin_host host_;
  std::vector<parameter_values> values_;
  rg_graph_source source_{};
  void* graph_ = nullptr;
  const component* executor_ = nullptr;
  rg_model functions_{};
  void* self_ = nullptr;
  rg_model_info info_{};
  std::uint64_t batch_;
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
  std::vector<floats> weights_, gradients_;
  std::vector<std::vector<std::uint64_t>> rows_; // of sparse tables, by tensor
  std::vector<rg_table_rows> tables_;
  std::vector<std::uint64_t> counts_;
};

} // namespace regatta::conformance
