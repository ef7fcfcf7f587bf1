// SPDX-License-Identifier: Apache-2.0
#include "campaign/facts.hpp"

#include "rank/clock.hpp"
#include "rank/model.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <regatta/plugin.hpp>

namespace regatta {

model_facts facts_of(const registry& plugins, const case_config& c) {
  const auto workers = c.train.scaling == "strong" ? static_cast<std::uint64_t>(c.cluster.workers) : 1;
  const std::uint64_t batch = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(c.train.batch) / workers /
                                                             static_cast<std::uint64_t>(c.train.accumulate));
  const model_instance model(plugins, c.model, c.train.device, model_setup_of(c, batch, RG_PURPOSE_INIT, nullptr), {});
  model_facts f;
  if (model.info().unit) f.unit = model.info().unit;
  for (const rg_tensor& t : model.tensors()) {
    if (t.kind == RG_TENSOR_STATE) f.batch_statistics = true;
    if (t.kind != RG_TENSOR_DENSE) continue;
    std::uint64_t n = 1;
    for (std::uint32_t d = 0; d < t.ndim; ++d) n *= static_cast<std::uint64_t>(t.shape[d]);
    f.parameters += n;
    f.weight_bytes += rg::storage_of(t) * sizeof(float);
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
  const std::uint64_t worker = m.weight_bytes * (2 + (servers ? 0 : states)) + m.activation_bytes + process;
  return workers * worker + (servers ? m.weight_bytes * (2 + states) + servers * process : 0);
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
  const auto workers = c.train.scaling == "strong" ? static_cast<double>(c.cluster.workers) : 1.0;
  return steps * static_cast<double>(c.train.batch) / workers * m.flops_per_sample /
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
