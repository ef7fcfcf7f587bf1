// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer for models. abi/model.h says at rg_model what each function must do and when it is called.
//
// A model that is a network of layers (regatta/layers.hpp) only describes the network; an executor computes it:
//
//   struct perceptron {
//     struct parameters { std::int64_t hidden = 128; };                        // optional, with `fields`
//     static constexpr auto fields = rg::fields(rg::field("hidden", &parameters::hidden, "units").range(1, 65536));
//     void build(rg::network& net, const parameters& p) const;                 // [main]
//   };
//   RG_PLUGIN("perceptron", "1.0", rg::graph_model<perceptron>("perceptron", "one hidden layer"))
//
// A model without a graph computes its steps itself:
//
//   class counter {
//   public:
//     counter(const rg_host* host, const parameters& p, const rg_model_setup& setup);       // [main]
//     rg_model_info describe(); // [main] called once, after the constructor; pointers in it valid as long as the model
//     // [main] and [loop]; no rows: the whole tensor
//     void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out);
//     void bind(const rg_model_memory& memory);                                             // [main]
//     rg_step_result step(const rg_batch& batch, const rg::hooks& hooks);                   // [compute]
//
//     // Optional:
//     void evaluate(const rg_batch& batch, std::span<double> sums);                         // [compute]
//     double metric(std::span<const double> sums);                                          // [compute] with evaluate
//     void canonical(std::uint32_t tensor, const float* memory, float* out);                // [main]
//     void from_canonical(std::uint32_t tensor, const float* canonical, float* memory);     // [main] with canonical
//     const char* kernels();                                    // [main] valid as long as the instance
//     void rows(const rg_batch& batch, std::span<rg_rows> out);   // [compute] required with sparse tables
//     void count(const rg_batch& batch, std::span<std::uint64_t> counts);                   // [compute]
//     void frequencies(std::uint32_t input, std::span<const double> weights);               // [main] frequencies.h
//   };
//   RG_PLUGIN("counter", "1.0", rg::model<counter>("counter", "counts"))
//
// Errors are thrown as rg::error; the destructor is destroy. struct_size need not be set in structs that are returned,
// but must be set in the elements of their arrays, as rg::description and make_versioned() do. Arguments are valid
// during the call, unless abi/model.h names a longer time.
#pragma once

#include <regatta/ext/device.h>
#include <regatta/ext/frequencies.h>
#include <regatta/layers.hpp>
#include <regatta/members.hpp>
#include <regatta/plugin.hpp>

#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace rg {

// Return the memory of a tensor, or of the rows of a sparse table, which are RG_F32 (rg_tensor.type); null where the
// interface says so.
inline float* weights_of(const rg_model_memory& m, std::uint32_t tensor) {
  return static_cast<float*>(m.weights[tensor]);
}
inline float* gradients_of(const rg_model_memory& m, std::uint32_t tensor) {
  return static_cast<float*>(m.gradients[tensor]);
}
inline const float* weights_of(const rg_table_rows& rows) {
  return static_cast<const float*>(rows.weights);
}
inline float* gradients_of(const rg_table_rows& rows) {
  return static_cast<float*>(rows.gradients);
}

RG_MEMBER_NAME(evaluate)
RG_MEMBER_NAME(metric)
RG_MEMBER_NAME(canonical)
RG_MEMBER_NAME(from_canonical)
RG_MEMBER_NAME(kernels)
RG_MEMBER_NAME(rows)
RG_MEMBER_NAME(count)
RG_MEMBER_NAME(frequencies)

// Thrown by hooks::need() when the engine wants the step to end at once. step() must let it pass.
struct step_ended {
  rg_status status;
};

// [compute] The functions that a model calls during a step (rg_hooks of abi/model.h). Valid until step() returns.
class hooks {
public:
  explicit hooks(const rg_hooks* h) noexcept
      : hooks_(h ? copy_versioned(*h) : rg_hooks{}),
        device_(hooks_.device ? copy_versioned(*hooks_.device) : rg_device_hooks{}) {}
  // To be called before dense weight `tensor` is first read in this step; if releases(), before its first read in each
  // pass. On devices it must be called for every dense tensor. May wait until the weight has arrived. On devices work
  // that reads the weight or writes its gradient must be ordered after the returned fence, unless that is 0; on the
  // host it returns 0. Throws step_ended.
  rg_fence need(std::uint32_t tensor) const {
    rg_fence after = 0;
    rg_status s = RG_OK;
    if (device_.need)
      s = device_.need(device_.context, tensor, &after);
    else if (hooks_.need)
      s = hooks_.need(hooks_.context, tensor);
    if (s != RG_OK) throw step_ended{s};
    return after;
  }
  // Returns whether weights may go out of memory between uses. A model with RG_MODEL_RELEASES then reads a weight only
  // after need() and calls done() after its last use, in the forward pass and again in the backward pass.
  bool releases() const { return device_.need ? bool(device_.done) : bool(hooks_.done); }
  // Reports that this pass reads weight `tensor` no more once `fence` has passed (0: now): until the next need() its
  // memory may hold anything.
  void done(std::uint32_t tensor, rg_fence fence = 0) const {
    if (device_.need) {
      if (device_.done) device_.done(device_.context, tensor, fence);
    } else if (hooks_.done) {
      hooks_.done(hooks_.context, tensor);
    }
  }
  // Reports that the gradients of the dense tensors up to and including `tensor` are final once `fence` has passed (0:
  // now), and that this step reads their weights no more. To be called in the last micro-batch (RG_BATCH_LAST) only,
  // with ascending tensors up to the last dense one.
  void ready(std::uint32_t tensor, rg_fence fence = 0) const {
    if (device_.ready)
      device_.ready(device_.context, tensor, fence);
    else if (hooks_.ready)
      hooks_.ready(hooks_.context, tensor);
  }
  // Reports that the forward pass begins once `fence` has passed: its first weights have arrived. Only for devices with
  // rg_device.elapsed; on the host it does nothing.
  void forward(rg_fence fence) const {
    if (device_.phase) device_.phase(device_.context, RG_PHASE_FORWARD, fence);
  }
  // Reports that the forward pass has ended, once `fence` has passed (0: now). Once in each call of step(), before the
  // first ready(). May wait until all weights have arrived.
  void backward(rg_fence fence = 0) const {
    if (device_.phase)
      device_.phase(device_.context, RG_PHASE_BACKWARD, fence);
    else if (hooks_.backward)
      hooks_.backward(hooks_.context);
  }
  // Reports that the loss_sum of this batch is at `*sum`, in host memory, once `fence` has passed, and stays there
  // until step() has been called twice more; rg_step_result.loss_sum is then not read. Requires a device.
  void late_loss(const double* sum, rg_fence fence) const { device_.late_loss(device_.context, sum, fence); }
  // Returns the dense tensors whose ready() the engine waits for, ascending and valid during the step; ready() may be
  // left out for all others. Returns nothing if the engine waits for every ready().
  std::optional<std::span<const std::uint32_t>> awaited() const {
    if (!device_.awaited) return std::nullopt;
    return std::span(device_.awaited, device_.awaited_count);
  }

private:
  rg_hooks hooks_;
  rg_device_hooks device_; // without functions on the host
};

namespace detail::models {

template <class M>
concept makes = requires(const rg_host* h, const parameters_t<M>& p, const rg_model_setup& s) {
  M(h, p, s);
};
template <class M>
concept has_describe = requires(M m) {
  { m.describe() } -> std::same_as<rg_model_info>;
};
template <class M>
concept has_init = requires(M m, std::span<const std::uint64_t> rows, std::span<float> out) {
  m.init(std::uint32_t{}, rows, std::uint64_t{}, out);
};
template <class M>
concept has_bind = requires(M m, const rg_model_memory& memory) {
  m.bind(memory);
};
template <class M>
concept has_step = requires(M m, const rg_batch& b, const hooks& h) {
  { m.step(b, h) } -> std::same_as<rg_step_result>;
};
template <class M>
concept has_evaluate = requires(M m, const rg_batch& b, std::span<double> sums) {
  m.evaluate(b, sums);
};
template <class M>
concept has_metric = requires(M m, std::span<const double> sums) {
  { m.metric(sums) } -> std::convertible_to<double>;
};
template <class M>
concept has_canonical = requires(M m, const float* in, float* out) {
  m.canonical(std::uint32_t{}, in, out);
};
template <class M>
concept has_from_canonical = requires(M m, const float* in, float* out) {
  m.from_canonical(std::uint32_t{}, in, out);
};
template <class M>
concept has_kernels = requires(M m) {
  { m.kernels() } -> std::convertible_to<const char*>;
};
template <class M>
concept has_rows = requires(M m, const rg_batch& b, std::span<rg_rows> out) {
  m.rows(b, out);
};
template <class M>
concept has_count = requires(M m, const rg_batch& b, std::span<std::uint64_t> counts) {
  m.count(b, counts);
};
template <class M>
concept has_frequencies = requires(M m, std::span<const double> weights) {
  m.frequencies(std::uint32_t{}, weights);
};
template <class M>
concept has_build = requires(M m, network& net, const parameters_t<M>& p) {
  m.build(net, p);
};
template <class M>
concept complete = has_describe<M> && has_init<M> && has_bind<M> && has_step<M>;

// One line of the compiler's output for each member that is missing.
template <class M> constexpr bool check() {
  static_assert(has_describe<M>, "a model needs: rg_model_info describe()");
  static_assert(has_init<M>, "a model needs: void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, "
                             "std::uint64_t seed, std::span<float> out)");
  static_assert(has_bind<M>, "a model needs: void bind(const rg_model_memory&)");
  static_assert(has_step<M>, "a model needs: rg_step_result step(const rg_batch&, const rg::hooks&)");
  static_assert(has_evaluate<M> == has_metric<M>,
                "evaluation needs both: void evaluate(const rg_batch&, std::span<double>) and "
                "double metric(std::span<const double>)");
  static_assert(has_canonical<M> == has_from_canonical<M>,
                "a layout of its own needs both: void canonical(std::uint32_t, const float*, float*) and "
                "void from_canonical(std::uint32_t, const float*, float*)");
  RG_OPTIONAL_MEMBER(M, evaluate, has_evaluate<M>, "void evaluate(const rg_batch&, std::span<double> sums)");
  RG_OPTIONAL_MEMBER(M, metric, has_metric<M>, "double metric(std::span<const double> sums)");
  RG_OPTIONAL_MEMBER(M, canonical, has_canonical<M>,
                     "void canonical(std::uint32_t tensor, const float* memory, float* out)");
  RG_OPTIONAL_MEMBER(M, from_canonical, has_from_canonical<M>,
                     "void from_canonical(std::uint32_t tensor, const float* canonical, float* memory)");
  RG_OPTIONAL_MEMBER(M, kernels, has_kernels<M>, "const char* kernels()");
  RG_OPTIONAL_MEMBER(M, rows, has_rows<M>, "void rows(const rg_batch&, std::span<rg_rows> out)");
  RG_OPTIONAL_MEMBER(M, count, has_count<M>, "void count(const rg_batch&, std::span<std::uint64_t> counts)");
  RG_OPTIONAL_MEMBER(M, frequencies, has_frequencies<M>,
                     "void frequencies(std::uint32_t input, std::span<const double> weights)");
  return true;
}

// An instance of model M, to which the `self` of the C functions points. `info` is kept for its sizes: those of the
// arguments of init, evaluate and metric.
template <class M> struct instance {
  instance(const rg_host* h, std::unique_ptr<M> m) : host(h), model(std::move(m)), info(model->describe()) {
    info.struct_size = sizeof info;
    for (std::uint32_t i = 0; i < info.tensor_count; ++i)
      if (at_stride(info.tensors, i).kind == RG_TENSOR_ROWS) {
        rows.push_back(make_versioned<rg_rows>());
        rows.back().tensor = i;
      }
  }
  const rg_host* host;
  std::unique_ptr<M> model;
  rg_model_info info;
  std::vector<rg_rows> rows; // the argument of M::rows(): one entry for each sparse table
};

template <class M> struct entry {
  static instance<M>& of(void* self) noexcept { return *static_cast<instance<M>*>(self); }

  static rg_status create(const rg_host* host, const rg_value* values, const rg_model_setup* setup,
                          void** self) noexcept {
    return fence(host, [&] {
      auto m = std::make_unique<M>(host, read_parameters<M>(values), copy_versioned(*setup));
      *self = std::make_unique<instance<M>>(host, std::move(m)).release();
    });
  }
  static void destroy(void* self) noexcept { delete &of(self); }
  static rg_status describe(void* self, rg_model_info* info) noexcept {
    fill_versioned(info, of(self).info);
    return RG_OK;
  }
  static rg_status init(void* self, std::uint32_t tensor, const std::uint64_t* rows, std::uint64_t row_count,
                        std::uint64_t seed, void* out) noexcept {
    return fence(of(self).host, [&] {
      const rg_model_info& info = of(self).info;
      if (tensor >= info.tensor_count) throw error(RG_E_PLUGIN, "init: there is no tensor " + std::to_string(tensor));
      const rg_tensor& t = at_stride(info.tensors, tensor);
      const std::uint64_t all = storage_of(t);
      const std::uint64_t count = rows ? row_count * (all / static_cast<std::uint64_t>(t.shape[0])) : all;
      of(self).model->init(tensor, {rows, rows ? row_count : 0}, seed, {static_cast<float*>(out), count});
    });
  }
  static rg_status bind(void* self, const rg_model_memory* memory) noexcept {
    return fence(of(self).host, [&] { of(self).model->bind(copy_versioned(*memory)); });
  }
  static rg_status step(void* self, const rg_batch* batch, const rg_hooks* h, rg_step_result* result) noexcept {
    return fence(of(self).host, [&]() -> rg_status {
      try {
        fill_versioned(result, of(self).model->step(copy_versioned(*batch), hooks(h)));
        return RG_OK;
      } catch (const step_ended& e) {
        return e.status; // the engine ended the step and knows the reason
      }
    });
  }
  static rg_status evaluate(void* self, const rg_batch* batch, double* sums) noexcept {
    return fence(of(self).host, [&] {
      of(self).model->evaluate(copy_versioned(*batch), {sums, of(self).info.metric_sums});
    });
  }
  static rg_status metric(void* self, const double* sums, double* value) noexcept {
    return fence(of(self).host, [&] { *value = of(self).model->metric({sums, of(self).info.metric_sums}); });
  }
  static rg_status canonical(void* self, std::uint32_t tensor, const void* memory, void* out) noexcept {
    return fence(of(self).host, [&] {
      of(self).model->canonical(tensor, static_cast<const float*>(memory), static_cast<float*>(out));
    });
  }
  static rg_status from_canonical(void* self, std::uint32_t tensor, const void* canonical, void* memory) noexcept {
    return fence(of(self).host, [&] {
      of(self).model->from_canonical(tensor, static_cast<const float*>(canonical), static_cast<float*>(memory));
    });
  }
  static rg_status rows(void* self, const rg_batch* batch, rg_rows* out) noexcept {
    return fence(of(self).host, [&] {
      auto& mine = of(self).rows;
      of(self).model->rows(copy_versioned(*batch), mine);
      for (std::size_t i = 0; i < mine.size(); ++i) fill_versioned(&const_cast<rg_rows&>(at_stride(out, i)), mine[i]);
    });
  }
  static const char* kernels(void* self) noexcept {
    const char* text = nullptr;
    fence(of(self).host, [&] { text = of(self).model->kernels(); });
    return text;
  }
  static rg_status count(void* self, const rg_batch* batch, std::uint64_t* counts) noexcept {
    return fence(of(self).host, [&] {
      of(self).model->count(copy_versioned(*batch), {counts, of(self).info.count_kinds});
    });
  }
  static rg_status frequencies(void* self, std::uint32_t input, const double* weights, std::uint64_t count) noexcept {
    return fence(of(self).host, [&] { of(self).model->frequencies(input, {weights, count}); });
  }
  static const void* extension([[maybe_unused]] const char* id) noexcept {
    if constexpr (has_frequencies<M>) {
      static constexpr rg_frequencies table = {sizeof(rg_frequencies), &frequencies};
      if (std::strcmp(id, RG_EXT_FREQUENCIES) == 0) return &table;
    }
    return nullptr;
  }
};

template <class M> constexpr rg_model make_functions() {
  rg_model f{};
  f.struct_size = sizeof f;
  if constexpr (makes<M>) f.create = &entry<M>::create; // models compiled by an executor have no create
  f.destroy = &entry<M>::destroy;
  f.describe = &entry<M>::describe;
  f.init = &entry<M>::init;
  f.bind = &entry<M>::bind;
  f.step = &entry<M>::step;
  if constexpr (has_evaluate<M>) f.evaluate = &entry<M>::evaluate;
  if constexpr (has_metric<M>) f.metric = &entry<M>::metric;
  if constexpr (has_canonical<M>) f.canonical = &entry<M>::canonical;
  if constexpr (has_from_canonical<M>) f.from_canonical = &entry<M>::from_canonical;
  if constexpr (has_kernels<M>) f.kernels = &entry<M>::kernels;
  if constexpr (has_rows<M>) f.rows = &entry<M>::rows;
  if constexpr (has_count<M>) f.count = &entry<M>::count;
  return f;
}
template <class M> inline constexpr rg_model functions = make_functions<M>();

// The functions of a model that is a graph: it has only the extension with its nodes.
template <class M> struct graph_entry {
  struct self_type {
    network net;
    const rg_graph* graph = nullptr;
  };
  static rg_status create(const rg_host* host, const rg_value* values, void** self) noexcept {
    return fence(host, [&] {
      auto s = std::make_unique<self_type>();
      M{}.build(s->net, read_parameters<M>(values));
      s->graph = s->net.graph();
      *self = s.release();
    });
  }
  static void destroy(void* self) noexcept { delete static_cast<self_type*>(self); }
  static const rg_graph* graph(void* self) noexcept { return static_cast<self_type*>(self)->graph; }

  static constexpr rg_graph_source source = {sizeof(rg_graph_source), &create, &destroy, &graph};
  static constexpr rg_model no_functions = [] {
    rg_model f = {};
    f.struct_size = sizeof f;
    return f;
  }();

  static const void* extension(const char* id) noexcept {
    return std::strcmp(id, RG_EXT_GRAPH) == 0 ? &source : nullptr;
  }
};

} // namespace detail::models

// Returns the component of model M, which computes its steps itself, for RG_PLUGIN.
template <class M> rg_component model(const char* id, const char* summary) {
  static_assert(detail::models::makes<M>,
                "a model is made by M(const rg_host*, const parameters&, const rg_model_setup&)");
  if constexpr (detail::models::check<M>() && detail::models::makes<M> && detail::models::complete<M>)
    return detail::component<M>(RG_KIND_MODEL, id, summary, &detail::models::functions<M>,
                                &detail::models::entry<M>::extension);
  else
    return {};
}

// Returns the component of model M, which is a graph and has a default constructor, for RG_PLUGIN.
template <class M> rg_component graph_model(const char* id, const char* summary) {
  static_assert(detail::models::has_build<M>, "a graph model needs: void build(rg::network&, const parameters&) const");
  if constexpr (detail::models::has_build<M>)
    return detail::component<M>(RG_KIND_MODEL, id, summary, &detail::models::graph_entry<M>::no_functions,
                                &detail::models::graph_entry<M>::extension);
  else
    return {};
}

} // namespace rg
