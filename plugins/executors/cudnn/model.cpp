// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>

#include <regatta/random.hpp>

namespace cudnn {

model::model(const rg_graph& graph, const rg_model_setup& setup) {
  cuda::device_count();
  if (setup.precision != RG_F32)
    throw rg::error(RG_E_UNSUPPORTED, "the cudnn executor computes in fp32 only: set train.precision to it");
  program_.batch = setup.batch;
  compile(graph, program_);
  for (const auto& w : program_.weights) tensors_.push_back(w->info);
  if (setup.purpose != RG_PURPOSE_INIT) prepare(setup);
}

void model::prepare(const rg_model_setup& setup) {
  if (setup.batch == 0) throw rg::error(RG_E_CONFIG, "a batch needs at least one sample");
  device_.emplace(setup.device);
  for (auto& o : program_.ops) o->prepare(*device_, program_.batch);
  for (auto& w : program_.weights) {
    w->data.reserve(w->elements * sizeof(float));
    if (w->info.kind == RG_TENSOR_DENSE) w->gradient.reserve(w->elements * sizeof(float));
  }
  // Every value and every gradient in one piece, each aligned as the libraries like it.
  constexpr std::size_t alignment = 64; // elements
  const auto room = [&](const value& v) {
    return (program_.batch * v.elements() + alignment - 1) / alignment * alignment;
  };
  const auto aliased = [&](const value* v) {
    return std::any_of(program_.aliases.begin(), program_.aliases.end(), [&](const auto& a) { return a.first == v; });
  };
  std::size_t elements = 0;
  for (const auto& v : program_.values)
    if (!aliased(v.get())) elements += room(*v) * (v->needs_gradient ? 2 : 1);
  memory_.reserve(elements * sizeof(float));
  float* at = memory_.get();
  for (auto& v : program_.values) {
    if (aliased(v.get())) continue;
    v->data = std::exchange(at, at + room(*v));
    if (v->needs_gradient) v->gradient = std::exchange(at, at + room(*v));
  }
  for (auto& [flat, of] : program_.aliases) {
    flat->data = of->data;
    flat->gradient = of->gradient;
  }
  mark();
}

void model::mark() {
  marks_.resize(program_.ops.size());
  std::vector<bool> seen(program_.weights.size());
  for (std::size_t k = 0; k < program_.ops.size(); ++k)
    for (weight* w : program_.ops[k]->weights()) {
      if (seen[w->index]) continue;
      seen[w->index] = true;
      marks_[k].needs.push_back(w);
      if (w->info.kind == RG_TENSOR_DENSE)
        marks_[k].ready = std::max(marks_[k].ready, static_cast<std::int64_t>(w->index));
    }
}

rg_model_info model::describe() {
  rg_model_info info{};
  info.tensor_count = static_cast<std::uint32_t>(tensors_.size());
  info.tensors = tensors_.data();
  info.inputs = program_.inputs.data();
  info.input_count = static_cast<std::uint32_t>(program_.inputs.size());
  info.metric_sums = cross_entropy::metric_sums;
  info.metric = "top1";
  info.unit = program_.unit.c_str();
  info.layout = "canonical";
  for (const auto& o : program_.ops) info.flops_per_sample += o->flops();
  return info;
}

// As every executor draws them: four by four, by the tensor's number in the graph.
void model::init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
  const weight& w = *program_.weights.at(tensor);
  if (!rows.empty()) throw rg::error(RG_E_PLUGIN, w.name + " is no table: it has no rows to start");
  if (out.size() < w.elements) throw rg::error(RG_E_PLUGIN, w.name + ": too little room for its start");
  const rg_tensor& t = w.info;
  const auto a = static_cast<float>(t.init_a), b = static_cast<float>(t.init_b);
  if (t.init == RG_INIT_CONSTANT) {
    std::fill_n(out.begin(), w.elements, a);
    return;
  }
  if (t.init != RG_INIT_UNIFORM && t.init != RG_INIT_NORMAL)
    throw rg::error(RG_E_CONFIG, w.name + ": unknown way to start, number " + std::to_string(t.init));
  const bool normal = t.init == RG_INIT_NORMAL;
  for (std::uint64_t i = 0; i < w.elements; i += 4) {
    const auto four = normal ? rg::random_normals(seed, i / 4, w.graph_index, rg::stream_init)
                             : rg::random_uniforms(seed, i / 4, w.graph_index, rg::stream_init);
    for (std::uint64_t k = i; k < std::min<std::uint64_t>(i + 4, w.elements); ++k)
      out[k] = normal ? a + b * four[k - i] : a + (b - a) * four[k - i];
  }
}

void model::bind(const rg_model_memory& memory) {
  if (!device_) throw rg::error(RG_E_PLUGIN, "bind: this instance was made for shapes and starts only");
  if (memory.tensor_count != program_.weights.size())
    throw rg::error(RG_E_PLUGIN, "bind: " + std::to_string(memory.tensor_count) + " tensors for " +
                                     std::to_string(program_.weights.size()));
  for (auto& w : program_.weights) {
    w->host = memory.weights[w->index];
    w->host_gradient = memory.gradients[w->index];
    if (!w->host || (w->info.kind == RG_TENSOR_DENSE && !w->host_gradient))
      throw rg::error(RG_E_PLUGIN, "bind: " + w->name + " has no memory");
  }
  bound_ = true;
}

void model::enter(const rg_batch& batch, const char* what) {
  if (!bound_) throw rg::error(RG_E_PLUGIN, std::string(what) + ": called before bind");
  if (batch.samples != program_.batch)
    throw rg::error(RG_E_PLUGIN, std::string(what) + ": a batch of " + std::to_string(batch.samples) +
                                     " samples, but the model was set up for " + std::to_string(program_.batch));
  device_->enter();
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) { // the first values stand for them; both types have 4 bytes
    const value& v = *program_.values[i];
    device_->upload(v.data, batch.inputs[i], batch.samples * v.elements() * sizeof(float));
  }
}

void model::bring(const weight& w) {
  device_->upload(w.data.get<void>(), w.host, w.elements * sizeof(float));
}

rg_step_result model::step(const rg_batch& batch, const rg::hooks& hooks) {
  enter(batch, "step");
  const run r{.batch = batch};
  for (std::size_t k = 0; k < program_.ops.size(); ++k) {
    for (const weight* w : marks_[k].needs) {
      if (w->info.kind == RG_TENSOR_DENSE) hooks.need(w->index);
      bring(*w);
    }
    program_.ops[k]->forward(*device_, r);
  }
  device_->check_launch();
  rg_step_result result{};
  result.loss_sum = program_.loss->sum(*device_); // waits for the forward pass
  result.count = batch.samples;
  hooks.backward();
  for (std::size_t k = program_.ops.size(); k-- > 0;) {
    op& o = *program_.ops[k];
    if (o.output().needs_gradient) o.backward(*device_, r);
    for (const weight* w : marks_[k].needs)
      if (w->info.kind == RG_TENSOR_DENSE)
        device_->download(w->host_gradient, w->gradient.get<void>(), w->elements * sizeof(float));
    if (marks_[k].ready >= 0 && (batch.flags & RG_BATCH_LAST)) hooks.ready(static_cast<std::uint32_t>(marks_[k].ready));
  }
  device_->check_launch();
  for (const auto& w : program_.weights)
    if (w->info.kind == RG_TENSOR_STATE) device_->download(w->host, w->data.get<void>(), w->elements * sizeof(float));
  return result;
}

void model::evaluate(const rg_batch& batch, std::span<double> sums) {
  enter(batch, "evaluate");
  const run r{.batch = batch, .training = false, .sums = sums.data()};
  for (std::size_t k = 0; k < program_.ops.size(); ++k) {
    for (const weight* w : marks_[k].needs) bring(*w);
    program_.ops[k]->forward(*device_, r);
  }
  device_->check_launch();
}

double model::metric(std::span<const double> sums) {
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

} // namespace cudnn
