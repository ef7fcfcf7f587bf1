// SPDX-License-Identifier: Apache-2.0
#include "runtime/model.hpp"

#include "../common/weights.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/loss.hpp"
#include "runtime/memory_plan.hpp"
#include "runtime/nvtx_range.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include <regatta/ext/device.h>
#include <regatta/ext/graph.h>

namespace cudnn {
namespace {

precision precision_of(const rg_model_setup& setup) {
  switch (setup.precision) {
  case RG_F32: return {};
  case RG_TF32: return {.tf32 = true, .channels_last = true};
  case RG_F16: return {.type = dtype::f16, .channels_last = true};
  case RG_BF16: return {.type = dtype::bf16, .channels_last = true};
  default: throw rg::error(RG_E_UNSUPPORTED, "the cudnn executor does not compute in this precision");
  }
}

} // namespace

model::model(const rg_host* host, const rg_graph& graph, const rg_model_setup& setup)
    : host_(host), captures_(!setup.plain && setup.debug == RG_DEBUG_NONE) {
  cuda::device_count();
  program_.computes = precision_of(setup);
  program_.batch = setup.batch;
  compile(graph, program_);
  if (setup.purpose != RG_PURPOSE_INIT) prepare(graph, setup);
}

model::~model() {
  if (device_) cudaStreamSynchronize(device_->stream);
  if (outcomes_) cudaFreeHost(outcomes_);
}

void model::prepare(const rg_graph& graph, const rg_model_setup& setup) {
  if (setup.batch == 0) throw rg::error(RG_E_CONFIG, "a batch needs at least one sample");
  for (const auto& v : program_.values)
    if (program_.batch * v->elements() >> 32)
      throw rg::error(RG_E_UNSUPPORTED, "layer " + v->name + ": " + std::to_string(program_.batch * v->elements()) +
                                            " elements, but kernels count in 32 bits: use a smaller batch");
  for (const auto& w : program_.weights)
    if ((w->copied || program_.computes.type == dtype::f16) && w->elements >> 32) // converted or unscaled by a kernel
      throw rg::error(RG_E_UNSUPPORTED, "tensor " + w->name + ": " + std::to_string(w->elements) +
                                            " elements, but kernels count in 32 bits");
  device_.emplace(setup.device, program_.computes);
  if (setup.debug == RG_DEBUG_SYNC) check_.emplace(*device_, program_, graph);
  fences_.emplace();
  timed_fences_.emplace(fences::kind::timed);
  for (auto& o : program_.ops) o->prepare(*device_);
  factors_.reserve(device_->varying, program_.losses.size());
  unscaled_.reserve(device_->varying, 1);
  device_->varying.allocate();
  losses_.reserve((program_.losses.size() + 1) * sizeof(double));
  sums_.reserve(program_.metric_sums * sizeof(double));
  host_sums_.resize(program_.metric_sums);
  flag_.reserve(sizeof(std::uint32_t));
  void* pinned = nullptr;
  cuda::check(cudaMallocHost(&pinned, outcomes * sizeof(outcome)), "allocating pinned memory");
  outcomes_ = static_cast<outcome*>(pinned);
  allocate_values();
  allocate_weights();
  for (executors::graph_tensor* t : program_.tables) t->sparse->prepare(t->info, t->info.max_rows);
  kernel_choices c(setup.kernels == RG_KERNELS_TIMED, setup.kernel_choices, device_->name());
  for (auto& o : program_.ops) o->attach(*device_, c);
  device_->synchronize();
  choices_report_ = c.report();
  find_weight_uses();
}

// The backward pass reads all activations, so each has memory for the whole step. Gradients share memory as their
// lifetimes allow.
void model::allocate_values() {
  std::vector<lifetime> plan;
  std::vector<value*> roots;
  std::vector<void**> pointers;
  const std::size_t last = program_.ops.size();
  for (const auto& v : program_.values) {
    if (v->alias) continue;
    const std::size_t bytes = program_.batch * v->elements() * size_of(v->type);
    plan.push_back({0, 2 * last + 1, bytes});
    pointers.push_back(&v->data);
    if (!v->needs_gradient) continue;
    // The backward pass of op k is moment 2 last - k.
    lifetime l{2 * last, 0, bytes};
    const auto touch = [&](std::size_t k) {
      l.begin = std::min(l.begin, 2 * last - k);
      l.end = std::max(l.end, 2 * last - k);
    };
    for (std::size_t k = 0; k < last; ++k) {
      const auto is = [&](const value* o) {
        while (o->alias) o = o->alias;
        return o == v.get();
      };
      op& o = *program_.ops[k];
      if (is(&o.output())) touch(k);
      for (const edge& e : o.inputs())
        if (is(e.from)) touch(k);
    }
    plan.push_back(l);
    pointers.push_back(&v->gradient);
  }
  memory_bytes_ = plan_memory(plan);
  memory_.reserve(memory_bytes_);
  for (std::size_t i = 0; i < plan.size(); ++i) *pointers[i] = memory_.get<std::byte>() + plan[i].offset;
  for (auto& v : program_.values) { // aliases come after the values whose memory they share
    if (!v->alias) continue;
    v->data = v->alias->data;
    v->gradient = v->alias->gradient;
  }
}

void model::allocate_weights() {
  memory_of_ = std::vector<tensor_memory>(program_.weights.size());
  for (auto& w : program_.weights) {
    tensor_memory& p = memory_of_[w->index];
    const std::size_t elements = w->sparse ? w->info.max_rows * w->row() : w->elements;
    p.data.reserve(elements * sizeof(float));
    w->data = p.data.get();
    if (w->info.kind == RG_TENSOR_STATE) continue;
    p.own_gradient.reserve(elements * sizeof(float));
    w->gradient = p.gradient = p.own_gradient.get();
    if (program_.computes.type == dtype::f16) {
      p.scaled.reserve(elements * sizeof(float));
      w->gradient = p.scaled.get();
    }
    if (!w->copied) continue;
    p.copy.reserve(w->elements * size_of(program_.computes.type));
    w->copy = p.copy.get<void>();
  }
}

void model::find_weight_uses() {
  weight_uses_.resize(program_.ops.size());
  for (const auto& w : program_.weights) {
    weight_uses_[w->first_op].needs.push_back(w.get());
    if (w->info.kind == RG_TENSOR_DENSE) weight_uses_[w->first_op].ready = w->index; // indices ascend
  }
}

rg_model_info model::describe() {
  rg_model_info info = program_.describe();
  info.layout = "canonical";
  info.activation_bytes = memory_bytes_;
  for (const auto& o : program_.ops) {
    info.flops_per_sample += o->flops();
    info.activation_bytes += o->held();
  }
  return info;
}

void model::init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
  const weight& w = *program_.weights.at(tensor);
  if (!rows.empty()) return executors::start_rows(w, rows, seed, out);
  if (out.size() < w.elements)
    throw rg::error(RG_E_PLUGIN, w.name + ": the buffer for its initial values is too small");
  rg::initial_values(w.info, w.graph_index, 0, seed, out.first(w.elements));
}

void model::canonical(std::uint32_t tensor, const float* memory, float* out) {
  std::copy_n(memory, program_.weights.at(tensor)->elements, out);
}

void model::from_canonical(std::uint32_t tensor, const float* canonical, float* memory) {
  std::copy_n(canonical, program_.weights.at(tensor)->elements, memory);
}

void model::bind(const rg_model_memory& memory) {
  executors::check_runs(device_.has_value(), "bind");
  executors::check_memory(memory, program_.tensors);
  on_device_ = memory.memory == RG_MEMORY_DEVICE;
  for (auto& w : program_.weights) {
    tensor_memory& p = memory_of_[w->index];
    if (w->sparse) continue; // its rows come with every step
    if (!on_device_) {
      p.host = rg::weights_of(memory, w->index);
      p.host_gradient = rg::gradients_of(memory, w->index);
      continue;
    }
    w->data = rg::weights_of(memory, w->index);
    if (w->info.kind == RG_TENSOR_DENSE) {
      p.gradient = rg::gradients_of(memory, w->index);
      if (program_.computes.type != dtype::f16) w->gradient = p.gradient;
    }
    p.data.release();
    p.own_gradient.release();
  }
  captures_ = captures_ && on_device_; // copies from and to memory that is not pinned break a capture
  // The first values are the inputs. No op writes to them, so they can stay from one step to the next.
  std::vector<input_upload::input> inputs;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i)
    inputs.push_back({program_.values[i]->data, program_.values[i]->elements()});
  device_->enter();
  upload_.emplace(*device_, std::move(inputs), program_.batch);
  bound_ = true;
}

void model::rows(const rg_batch& batch, std::span<rg_rows> out) {
  executors::check_runs(device_.has_value(), "rows");
  program_.rows(batch, out);
}

void model::enter(const run& r, const char* what) {
  executors::check_batch(r.batch, bound_, program_.batch, program_.tables.size(), what);
  device_->enter();
  upload_tables(r);
  device_->varying.open();
  for (auto& o : program_.ops) o->vary(r);
  *unscaled_.host() = 1 / r.loss_scale;
  for (std::size_t i = 0; i < program_.losses.size(); ++i)
    factors_.host()[i] = program_.losses.size() == 1
                             ? 1.0
                             : static_cast<double>(r.batch.global_samples) / program_.losses[i]->divisor(r.batch);
  device_->varying.upload(device_->stream);
  upload_->upload(r.batch);
}

// The number of rows differs from step to step, so the copies of rows come before and after the captured graphs.
void model::upload_tables(const run& r) {
  for (std::size_t t = 0; t < program_.tables.size(); ++t) {
    executors::graph_tensor& w = *program_.tables[t];
    const auto rows = rg::copy_versioned(rg::at_stride(r.batch.tables, t));
    w.sparse->take(w.info, w.index, rows);
    memory_of_[w.index].host_gradient = rg::gradients_of(rows);
    const std::size_t bytes = rows.count * w.row() * sizeof(float);
    make_room(w, bytes);
    if (rows.count && !(on_device_ && (r.batch.flags & RG_BATCH_ACCUMULATE))) // else uploaded by the first micro-batch
      device_->upload(w.data, rows.weights, bytes);
    if (rows.count && r.training && !r.accumulate) device_->clear(w.gradient, bytes);
  }
}

// A window may hold more rows than one batch touches: those of all micro-batches of a step.
void model::make_room(executors::graph_tensor& w, std::size_t bytes) {
  tensor_memory& p = memory_of_[w.index];
  if (bytes <= p.data.bytes()) return;
  device_->synchronize();
  const std::size_t most = static_cast<std::size_t>(w.info.shape[0]) * w.row() * sizeof(float);
  bytes = std::max(bytes, std::min(most, 2 * p.data.bytes()));
  p.data.reserve(bytes);
  p.own_gradient.reserve(bytes);
  w.data = p.data.get();
  w.gradient = p.gradient = p.own_gradient.get();
  if (program_.computes.type == dtype::f16) {
    p.scaled.reserve(bytes);
    w.gradient = p.scaled.get();
  }
  for (part& of : parts_) { // captured graphs contain the old addresses
    of.forward_graph = {};
    of.backward_graphs = {};
  }
}

void model::download_tables(const run& r) {
  for (const executors::graph_tensor* w : program_.tables) {
    const tensor_memory& p = memory_of_[w->index];
    const std::size_t elements = w->sparse->count * w->row();
    if (elements == 0) continue;
    unscale(*w, elements, r);
    if (!on_device_ || (r.batch.flags & RG_BATCH_LAST))
      cuda::check(cudaMemcpyAsync(p.host_gradient, p.gradient, elements * sizeof(float), cudaMemcpyDeviceToHost,
                                  device_->stream),
                  "copying gradients of rows");
  }
}

void model::fetch(const weight& w, rg_fence after) {
  if (on_device_)
    wait_for(device_->stream, after);
  else if (!w.sparse)
    device_->upload(w.data, memory_of_[w.index].host, w.elements * sizeof(float));
}

void model::convert(const weight& w) {
  if (w.copied)
    kernels::relayout(device_->stream, dtype::f32, w.layout, w.data, program_.computes.type, w.copy_layout, w.copy,
                      w.elements / w.layout.elements(), false);
}

void model::unscale(const executors::graph_tensor& w, std::size_t elements, const run& r) {
  const tensor_memory& p = memory_of_[w.index];
  if (w.gradient != p.gradient)
    kernels::unscale(device_->stream, w.gradient, unscaled_.device(), p.gradient, elements,
                     (r.batch.flags & RG_BATCH_ACCUMULATE) != 0, flag_.get<std::uint32_t>());
}

// Gradients of tables follow in download_tables().
void model::finish(const weight& w, const run& r) {
  if (w.info.kind != RG_TENSOR_DENSE) return;
  unscale(w, w.elements, r);
  const tensor_memory& p = memory_of_[w.index];
  if (!on_device_) device_->download(p.host_gradient, p.gradient, w.elements * sizeof(float));
}

void model::learn_scale() {
  if (program_.computes.type != dtype::f16) return;
  while (learned_ < steps_) {
    const std::size_t at = learned_ % outcomes;
    // The next step overwrites the oldest of `outcomes` results, so it must have arrived; that step is four steps old.
    if (steps_ - learned_ >= outcomes)
      cuda::check(cudaEventSynchronize(event_of(passed_[at])), "waiting for a step");
    else if (!passed(passed_[at]))
      return;
    scale_.update(outcomes_[at].not_finite == 0);
    ++learned_;
  }
}

// A part ends a bucket: before it all its weights are waited for, and after its backward pass the bucket's gradients
// are reported. If weights are in host memory, every op is a part, since its weights are copied just before it.
void model::divide(const rg::hooks& hooks) {
  const auto awaited = hooks.awaited();
  std::int64_t told = -1;
  std::size_t last = program_.ops.size() - 1;
  const auto ends = [&](std::int64_t ready) {
    const auto meets = [&](std::uint32_t t) { return told < t && t <= ready; };
    return ready > told && (!awaited || std::any_of(awaited->begin(), awaited->end(), meets));
  };
  for (std::size_t k = program_.ops.size(); k-- > 0;) {
    const std::int64_t ready = weight_uses_[k].ready;
    const bool tells = ends(ready);
    if (on_device_ && !tells) continue;
    if (tells) told = ready;
    parts_.push_back({.first = k, .last = last, .ready = tells ? ready : -1});
    last = k - 1;
  }
  if (parts_.empty()) parts_.push_back({.first = 0, .last = last, .ready = -1});
  parts_.back().first = 0; // the ops before the first weight belong to the first part
  std::reverse(parts_.begin(), parts_.end());
}

// The launches of a part are the same in every step; values that change are in memory (staging.hpp).
template <class F> void model::launch_or_replay(captured_graph& r, const F& launch) {
  if (!captures_) return launch();
  const bool before = refused_.empty();
  r.run(device_->stream, launch, refused_);
  if (before && !refused_.empty() && host_->log)
    host_->log(host_->context, RG_LOG_WARNING,
               ("CUDA captured no graph of a step, so its kernels are launched one by one: " + refused_).c_str());
}

void model::forward(const part& p, const run& r) {
  for (std::size_t k = p.first; k <= p.last; ++k) {
    for (const weight* w : weight_uses_[k].needs) convert(*w);
    forward(*program_.ops[k], r);
  }
  if (&p == &parts_.back())
    kernels::combine(device_->stream, losses_.get<double>(), factors_.device(), program_.losses.size(),
                     losses_.get<double>() + program_.losses.size());
}

void model::forward(op& o, const run& r) {
  const nvtx_range range(o.name());
  if (check_) check_->before_forward(o, r);
  o.forward(*device_, r);
  device_->check_launch(o.name(), "forward");
  if (check_) check_->after_forward(o, r);
}

void model::backward(const part& p, const run& r) {
  for (std::size_t k = p.last + 1; k-- > p.first;) {
    op& o = *program_.ops[k];
    const nvtx_range range(o.name());
    if (check_ && o.output().needs_gradient) check_->before_backward(o, r);
    if (o.output().needs_gradient) o.backward(*device_, r);
    for (weight* w : weight_uses_[k].needs) finish(*w, r);
    device_->check_launch(o.name(), "backward");
    if (check_ && o.output().needs_gradient) check_->after_backward(o, r);
  }
}

rg_step_result model::step(const rg_batch& batch, const rg::hooks& hooks) {
  const bool scaled = program_.computes.type == dtype::f16;
  if (scaled) learn_scale();
  const run r{.batch = batch,
              .accumulate = (batch.flags & RG_BATCH_ACCUMULATE) != 0 && !scaled,
              .loss_scale = scaled ? scale_.value() : 1,
              .losses = losses_.get<double>()};
  enter(r, "step");
  if (parts_.empty()) divide(hooks); // after enter(), which refuses a step before bind()
  if (scaled) device_->clear(flag_.get<void>(), flag_.bytes());
  for (part& p : parts_) {
    for (std::size_t k = p.first; k <= p.last; ++k)
      for (const weight* w : weight_uses_[k].needs)
        fetch(*w, w->info.kind == RG_TENSOR_DENSE ? hooks.need(w->index) : 0);
    if (on_device_ && &p == &parts_.front()) hooks.forward(timed_fences_->record(device_->stream));
    launch_or_replay(p.forward_graph, [&] { forward(p, r); });
  }
  hooks.backward(on_device_ ? timed_fences_->record(device_->stream) : 0);
  const bool adds = (batch.flags & RG_BATCH_ACCUMULATE) != 0;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    part& p = parts_[i];
    launch_or_replay(p.backward_graphs[adds], [&] { backward(p, r); });
    if (p.ready >= 0 && (batch.flags & RG_BATCH_LAST))
      hooks.ready(static_cast<std::uint32_t>(p.ready), on_device_ ? fences_->record(device_->stream) : 0);
  }
  download_tables(r);
  const std::size_t slot = steps_ % outcomes;
  outcome& out = outcomes_[slot];
  const double* loss = losses_.get<double>() + program_.losses.size();
  cuda::check(cudaMemcpyAsync(&out.loss, loss, sizeof(double), cudaMemcpyDeviceToHost, device_->stream), "copying");
  if (scaled)
    cuda::check(cudaMemcpyAsync(&out.not_finite, flag_.get<void>(), sizeof out.not_finite, cudaMemcpyDeviceToHost,
                                device_->stream),
                "copying");
  passed_[slot] = timed_fences_->record(device_->stream);
  ++steps_;

  rg_step_result result{};
  result.count = program_.losses.size() == 1 ? program_.losses.front()->count(batch) : batch.samples;
  if (on_device_) {
    hooks.late_loss(&out.loss, passed_[slot]);
    return result;
  }
  for (const auto& w : program_.weights)
    if (w->info.kind == RG_TENSOR_STATE)
      device_->download(memory_of_[w->index].host, w->data, w->elements * sizeof(float));
  device_->synchronize();
  result.loss_sum = out.loss;
  return result;
}

void model::evaluate(const rg_batch& batch, std::span<double> sums) {
  const run r{.batch = batch, .training = false, .sums = sums_.get<double>()};
  enter(r, "evaluate");
  device_->clear(sums_.get<void>(), sums_.bytes());
  for (std::size_t k = 0; k < program_.ops.size(); ++k) {
    for (const weight* w : weight_uses_[k].needs) {
      fetch(*w, 0);
      convert(*w);
    }
    forward(*program_.ops[k], r);
  }
  device_->download(host_sums_.data(), sums_.get<void>(), sums_.bytes());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += host_sums_[i];
}

// The report: the choices of kernels, and the number of captured graphs in a step.
const char* model::kernels() {
  const auto captured = [](const part& p) { return p.forward_graph.captured() + p.backward_graphs[0].captured(); };
  const auto graphs = std::transform_reduce(parts_.begin(), parts_.end(), 0, std::plus<>(), captured);
  report_ = choices_report_;
  if (graphs || !refused_.empty()) report_ += "graphs: " + std::to_string(graphs) + '\n';
  return report_.empty() ? nullptr : report_.c_str();
}

} // namespace cudnn
