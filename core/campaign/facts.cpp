// SPDX-License-Identifier: Apache-2.0
#include "campaign/facts.hpp"

#include "base/failure.hpp"
#include "data/source.hpp"
#include "rank/clock.hpp"
#include "rank/model.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {

namespace {

// Places for tokens that a sample of the model has: its longest row of indices.
std::uint64_t tokens_of_sample(const registry& plugins, const case_config& c) {
  const model_instance model(plugins, c.model, c.train.device, model_setup_of(c, 1, RG_PURPOSE_INIT, nullptr), {});
  std::uint64_t most = 0;
  for (const rg_input& in : model.inputs()) {
    std::uint64_t places = 1;
    for (std::uint32_t d = 0; d < in.ndim; ++d) places *= static_cast<std::uint64_t>(in.shape[d]);
    if (in.kind == RG_INPUT_INDEX) most = std::max(most, places);
  }
  if (!most)
    throw failure(exit_code::usage, fmt::format("train.batch_unit = \"tokens\": model {} takes no tokens", c.model.id));
  return most;
}

} // namespace

std::uint64_t batch_per_worker(const registry& plugins, const case_config& c) {
  const auto workers = static_cast<std::uint64_t>(c.cluster.workers), batch = static_cast<std::uint64_t>(c.train.batch),
             micros = static_cast<std::uint64_t>(c.train.accumulate);
  const bool strong = c.train.scaling == "strong";
  if (c.train.batch_unit == "tokens") {
    const std::uint64_t tokens = tokens_of_sample(plugins, c);
    const std::uint64_t samples = batch / tokens / (strong ? workers : 1) / micros * micros;
    if (!samples)
      throw failure(exit_code::usage,
                    fmt::format("train.batch = {} tokens is less than one sample of {} for each of {} workers and {} "
                                "micro-batches",
                                batch, tokens, strong ? workers : 1, micros));
    return samples;
  }
  if (strong && batch % workers)
    throw failure(exit_code::usage,
                  fmt::format("train.batch = {} is global (scaling = \"strong\") and does not divide by {} workers",
                              batch, workers));
  const std::uint64_t mine = strong ? batch / workers : batch;
  if (mine % micros)
    throw failure(exit_code::usage,
                  fmt::format("a worker's batch of {} does not divide by train.accumulate = {}", mine, micros));
  return mine;
}

model_facts facts_of(const registry& plugins, const case_config& c) {
  const std::uint64_t worker_batch = batch_per_worker(plugins, c);
  const std::uint64_t batch = worker_batch / static_cast<std::uint64_t>(c.train.accumulate);
  const model_instance model(plugins, c.model, c.train.device, model_setup_of(c, batch, RG_PURPOSE_INIT, nullptr), {});
  check_data(c.data, model.inputs());
  model_facts f;
  f.batch_per_worker = worker_batch;
  if (model.info().unit) f.unit = model.info().unit;
  for (const rg_tensor& t : model.tensors()) {
    if (t.kind == RG_TENSOR_STATE) f.batch_statistics = true;
    if (t.kind == RG_TENSOR_STATE) continue;
    std::uint64_t n = 1;
    for (std::uint32_t d = 0; d < t.ndim; ++d) n *= static_cast<std::uint64_t>(t.shape[d]);
    f.parameters += n;
    if (t.kind == RG_TENSOR_DENSE) {
      f.weight_bytes += rg::storage_of(t) * sizeof(float);
      continue;
    }
    f.table_parameters += n;
    if (!f.table.empty()) f.table += ", ";
    f.table += t.name;
    const auto rows = static_cast<std::uint64_t>(t.shape[0]);
    const std::uint64_t row_bytes = rg::storage_of(t) / std::max<std::uint64_t>(rows, 1) * sizeof(float);
    const std::uint64_t step = std::min(rows, t.max_rows * static_cast<std::uint64_t>(c.train.accumulate));
    f.window_bytes += step * (2 * row_bytes + sizeof(std::uint64_t));
    // With measure.seconds nobody knows how many steps there will be.
    const std::uint64_t steps =
        c.measure.seconds > 0 ? rows
                              : static_cast<std::uint64_t>((c.measure.warmup + c.measure.steps) * c.cluster.workers);
    f.table_bytes += std::min(rows, step * std::max<std::uint64_t>(steps, 1)) * row_bytes;
  }
  f.activation_bytes = model.info().activation_bytes;
  f.flops_per_sample = model.info().flops_per_sample;
  return f;
}

std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers) {
  const std::uint64_t states = c.optimizer.plugin == "adam" ? 2 : c.optimizer.plugin == "sgd" ? 0 : 1;
  constexpr std::uint64_t process = 64ull << 20; // code, libraries, buffers of the transport
  const auto workers = static_cast<std::uint64_t>(c.cluster.workers);
  // A worker: weights, gradients, state. The servers together: weights, sums, state.
  // Of the tables, windows; whoever holds them: weights and state.
  const std::uint64_t tables = m.table_bytes * (1 + states);
  const std::uint64_t worker = m.weight_bytes * (2 + (servers ? 0 : states)) + m.activation_bytes + process +
                               m.window_bytes + (servers ? 0 : tables);
  const std::int64_t recorded = std::min(c.measure.warmup + c.measure.steps, steps_reserved);
  const std::uint64_t steps = static_cast<std::uint64_t>(recorded) * 96; // bytes
  return workers * (worker + steps) + (servers ? m.weight_bytes * (2 + states) + tables + servers * process : 0);
}

void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows) {
  if (m.table.empty() || exchanges_rows) return;
  throw failure(
      exit_code::usage,
      fmt::format("model {} has sparse tables ({}), and strategy {} over transport {} does not exchange their "
                  "rows; see \"rows of sparse tables\" in `regatta describe strategy/{}` and \"exact sizes\" in "
                  "`regatta describe transport/{}`",
                  c.model.id, m.table, c.strategy.id, c.transport.id, c.strategy.id, c.transport.id));
}

std::uint64_t available_bytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string key, rest; in >> key && std::getline(in, rest);)
    if (key == "MemAvailable:") return std::stoull(rest) * 1024;
  return 0;
}

double estimated_seconds(const case_config& c, const model_facts& m, double flops_per_second) {
  if (c.measure.seconds > 0) return c.measure.seconds;
  const auto steps = static_cast<double>(c.measure.warmup + c.measure.steps);
  return steps * static_cast<double>(m.batch_per_worker) * m.flops_per_sample /
         (flops_per_second * static_cast<double>(c.cluster.threads));
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
static float
multiply_add(std::size_t rounds, float a, float b) {
  std::array<float, 256> x{}; // enough independent chains to hide the latency of every unit
  for (std::size_t r = 0; r < rounds; ++r)
    for (float& v : x) v = v * a + b;
  float sum = 0;
  for (const float v : x) sum += v;
  return sum;
}

double measure_flops() {
  constexpr std::size_t rounds = 200'000;
  double best = 0;
  volatile float keep = 0;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t begin = steady_ns();
    keep = multiply_add(rounds, 0.999f, 0.001f);
    best = std::max(best, 2.0 * 256 * rounds / (static_cast<double>(steady_ns() - begin) * 1e-9));
  }
  (void)keep;
  return best;
}

} // namespace regatta
