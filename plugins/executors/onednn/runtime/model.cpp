// SPDX-License-Identifier: Apache-2.0
#include "runtime/model.hpp"

#include "../common/weights.hpp"
#include "compile/compiler.hpp"
#include "kernels/primitives.hpp"
#include "ops/embedding.hpp"
#include "runtime/instruction_set.hpp"
#include "tuning/kernel_choices.hpp"

#include <regatta/clock.hpp>
#include <regatta/ext/graph.h>
#include <regatta/random.hpp>

#include <algorithm>
#include <cstring>

#ifdef ONEDNN_LIMITS_OPENMP
#include <omp.h>
#endif

namespace onednn {
namespace {

// oneDNN and OpenMP read the number of threads from a setting of the calling thread.
void use_threads([[maybe_unused]] int threads) {
#ifdef ONEDNN_LIMITS_OPENMP
  omp_set_num_threads(threads);
#endif
}

// Returns whether to compute in bf16. Throws RG_E_UNSUPPORTED if this CPU cannot compute in the requested precision.
bool wants_half(const rg_model_setup& setup) {
  if (setup.precision == RG_F32) return false;
  if (setup.precision != RG_BF16)
    throw rg::error(RG_E_UNSUPPORTED,
                    "the oneDNN executor computes in fp32 or bf16: set train.precision to one of them");
  if (setup.purpose == RG_PURPOSE_INIT || has(dnnl::cpu_isa::avx512_core_bf16)) return true;
  if (!setup.emulate)
    throw rg::error(RG_E_UNSUPPORTED, "this CPU has no bf16 instructions: set train.precision = \"fp32\", or "
                                      "train.emulate = true to compute in bf16 slowly");
  if (!has(dnnl::cpu_isa::avx512_core))
    throw rg::error(RG_E_UNSUPPORTED,
                    "this CPU cannot emulate bf16: that takes AVX-512; set train.precision = \"fp32\"");
  return true;
}

} // namespace

model::model(const rg_host* host, const rg_graph& graph, const rg_model_setup& setup) : trace_(host) {
  if (setup.memory != RG_MEMORY_HOST) throw rg::error(RG_E_UNSUPPORTED, "the oneDNN executor runs on the CPU only");
  program_.dev.half = wants_half(setup);
  program_.dev.row_major = setup.row_major != 0;
  program_.dev.kernels = &kernels_for(isa_level());
  program_.dev.threads = static_cast<int>(std::max<std::uint32_t>(1, setup.threads));
  program_.dev.log = rg::logger(host);
  program_.dev.collectives = rg::step_collectives(host);
  program_.batch = setup.batch;
  use_threads(program_.dev.threads);
  compile(graph, program_);
  losses_.resize(program_.losses.size());
  name_layout();
  if (setup.purpose != RG_PURPOSE_INIT) prepare_to_run(setup);
}

void model::prepare_to_run(const rg_model_setup& setup) {
  if (setup.batch == 0) throw rg::error(RG_E_CONFIG, "a batch needs at least one sample");
  kernel_choices choices(setup.kernels, setup.kernel_choices, program_.dev);
  for (auto& o : program_.ops) o->prepare({program_.dev, program_.batch, choices});
  for (auto& o : program_.ops) o->report(kernels_);
  if (!kernels_.empty()) kernels_ += std::string("instruction set: ") + isa_name() + '\n';
  memory_ = plan_memory(program_, memory_bytes_);
  for (executors::graph_tensor* t : program_.tables) t->sparse->prepare(t->info, t->info.max_rows);

  for (const auto& o : program_.ops) names_.push_back(trace_.text(o->name()));
  marks_.resize(program_.ops.size());
  for (const auto& w : program_.weights) {
    if (w->info.kind != RG_TENSOR_DENSE) continue;
    marks_[w->first_op].needs.push_back(w->index);
    marks_[w->last_op].releases.push_back(w->index);
    marks_[w->first_op].ready = w->index; // they ascend: the last one stays
  }
  runs_ = true;
}

// Sets layout_ to an FNV-1a hash over everything that determines where an element of a weight lies.
void model::name_layout() {
  std::uint64_t hash = 0xcbf29ce484222325;
  auto mix = [&](const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const std::uint8_t*>(data)[i]) * 0x100000001b3;
  };
  for (const auto& w : program_.weights) {
    mix(w->name.data(), w->name.size() + 1);
    mix(&w->info.storage, sizeof w->info.storage);
    const std::vector<dnnl_dim_t> numbers = layout_numbers(w->layout);
    mix(numbers.data(), numbers.size() * sizeof numbers[0]);
  }
  char text[32];
  std::snprintf(text, sizeof text, "onednn-%016llx", static_cast<unsigned long long>(hash));
  layout_ = text;
}

rg_model_info model::describe() {
  rg_model_info info = program_.describe();
  info.layout = layout_.c_str();
  info.flags |= RG_MODEL_RELEASES;
  info.activation_bytes = memory_bytes_;
  for (const auto& o : program_.ops) info.flops_per_sample += o->flops();
  return info;
}

void model::init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
  const weight& w = *program_.weights[tensor];
  if (!rows.empty()) return executors::start_rows(w, rows, seed, out);
  std::vector<float> whole(w.elements);
  rg::initial_values(w.info, w.graph_index, 0, seed, whole);
  if (out.size() < w.info.storage)
    throw rg::error(RG_E_PLUGIN, w.name + ": the buffer for its initial values is too small");
  from_canonical(tensor, whole.data(), out.data());
}

void model::convert(const desc& from, const float* in, const desc& to, float* out) {
  use_threads(program_.dev.threads);
  device& d = program_.dev;
  dnnl::memory source = d.wrap(from, const_cast<float*>(in)), target = d.wrap(to, out);
  dnnl::reorder(source, target).execute(d.stream, source, target);
  d.stream.wait();
}

void model::canonical(std::uint32_t tensor, const float* memory, float* out) {
  const weight& w = *program_.weights.at(tensor);
  convert(w.layout, memory, w.canonical, out);
}

void model::from_canonical(std::uint32_t tensor, const float* canonical, float* memory) {
  const weight& w = *program_.weights.at(tensor);
  std::fill_n(memory, w.info.storage, 0.0F); // padding
  convert(w.canonical, canonical, w.layout, memory);
}

void model::bind(const rg_model_memory& memory) {
  executors::check_runs(runs_, "bind");
  executors::check_memory(memory, program_.tensors);
  for (auto& w : program_.weights) {
    if (w->sparse) continue; // memory is passed with every step
    w->data = rg::weights_of(memory, w->index);
    w->gradient = rg::gradients_of(memory, w->index);
  }
  bound_ = true;
}

void model::enter(const rg_batch& batch, const char* what) {
  executors::check_batch(batch, bound_, program_.batch, program_.tables.size(), what);
  use_threads(program_.dev.threads);
  for (auto& v : program_.values) // the cast is safe: no op writes to an input
    if (v->input >= 0) v->data = static_cast<float*>(const_cast<void*>(batch.inputs[v->input]));
  for (std::size_t t = 0; t < program_.tables.size(); ++t)
    take_rows(*program_.tables[t], rg::at_stride(batch.tables, t));
}

void model::rows(const rg_batch& batch, std::span<rg_rows> out) {
  executors::check_runs(runs_, "rows");
  program_.rows(batch, out);
}

void model::add_gradient(const edge& e) const {
  const elementwise_kernels& k = program_.dev.kernels->elementwise;
  const std::size_t count = e.from->stride * program_.batch;
  if (e.from->half)
    k.add_halves(as<bf16>(e.from->gradient), as<bf16>(e.gradient), count);
  else
    k.add(e.from->gradient, e.gradient, count);
}

template <class F> void model::run_op(std::size_t k, const char* pass, F&& f) const {
  if (!trace_.on()) return f();
  const std::uint64_t begin = rg::now_ns();
  f();
  trace_.span({.name = names_[k], .category = pass}, begin, rg::now_ns());
}

rg_step_result model::step(const rg_batch& batch, const rg::hooks& hooks) {
  enter(batch, "step");
  run r{.batch = &batch,
        .hooks = &hooks,
        .accumulate = (batch.flags & RG_BATCH_ACCUMULATE) != 0,
        .losses = losses_.data()};
  for (std::size_t k = 0; k < program_.ops.size(); ++k) {
    for (std::uint32_t w : marks_[k].needs) hooks.need(w);
    run_op(k, "forward", [&] { program_.ops[k]->forward(r); });
    for (std::uint32_t w : marks_[k].releases) hooks.done(w);
  }
  hooks.backward();
  const bool releases = hooks.releases();
  for (std::size_t k = program_.ops.size(); k-- > 0;) {
    op& o = *program_.ops[k];
    if (releases)
      for (std::uint32_t w : marks_[k].releases) hooks.need(w);
    if (o.output().needs_gradient)
      run_op(k, "backward", [&] {
        o.backward(r);
        for (const edge& e : o.inputs())
          if (e.own && e.gradient) add_gradient(e);
      });
    for (std::uint32_t w : marks_[k].needs) hooks.done(w);
    if (marks_[k].ready >= 0 && (batch.flags & RG_BATCH_LAST)) hooks.ready(static_cast<std::uint32_t>(marks_[k].ready));
  }
  rg_step_result result{};
  if (program_.losses.size() == 1) {
    result.loss_sum = losses_.front();
    result.count = program_.losses.front()->count(batch);
  } else { // scaled so that the engine's mean over all workers is the sum of the mean losses
    for (const executors::measured* l : program_.losses)
      result.loss_sum += losses_[l->number] * static_cast<double>(batch.global_samples) / l->divisor(batch);
    result.count = batch.samples;
  }
  return result;
}

void model::evaluate(const rg_batch& batch, std::span<double> sums) {
  enter(batch, "evaluate");
  run r{.batch = &batch, .training = false, .sums = sums.data()};
  for (auto& o : program_.ops) o->forward(r);
}

const char* model::kernels() {
  return kernels_.empty() ? nullptr : kernels_.c_str();
}

} // namespace onednn
