// SPDX-License-Identifier: Apache-2.0
//
// Figures of runs that never ran, and their entries in a result.
#pragma once

#include "json.hpp"
#include "results/case_entry.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace regatta::test {

inline void set_losses(run_figures& f, const std::vector<double>& losses) {
  f.losses = losses;
  f.loss_steps.clear();
  for (std::size_t s = 0; s < losses.size(); ++s) f.loss_steps.push_back(s);
  f.loss_seconds.assign(losses.size(), std::nullopt);
}

inline run_figures run(double rate, const time_parts& time, double samples = 10) {
  run_figures f;
  f.samples_per_second = rate;
  f.batches_per_second = rate / samples;
  f.samples_per_worker_step = samples;
  f.step_seconds = {{time.total(), time.total()}};
  f.time = time;
  f.worker_sent_bytes = 100;
  f.given_bytes = 90;
  f.worker_received_bytes = 50;
  f.memory_peak_bytes = {1000, 0};
  f.cpu_seconds = {1, 2};
  set_losses(f, {2, 1.5, 1});
  f.replicas_identical = true;
  f.kernels = "conv1: jit_wino\nconv2: jit\n";
  f.layout = "nchw";
  f.isa = "avx2";
  return f;
}

inline case_config two_workers() {
  case_config c;
  c.swept = {{"cluster.workers", 2}};
  c.cluster.workers = 2;
  c.model.id = "mlp";
  c.strategy.id = "allreduce";
  c.transport.id = "shm";
  return c;
}

// Weak scaling: 10 samples for each of two workers.
inline case_facts weak() {
  case_facts f;
  f.model.batch_per_worker = 10;
  f.global_batch = 20;
  f.model.unit = "images";
  return f;
}

// One worker: 100 ms for 10 samples. Two: 110 ms, of which 4 are communication, 2 waiting, 3 slower computing.
inline const time_parts alone{0.001, 0.030, 0.060, 0.008, 0, 0, 0.001};
inline const time_parts shared{0.001, 0.031, 0.062, 0.008, 0.004, 0.002, 0.002};

// Returns the entry of a case that ran.
inline json case_entry(const case_config& config, const case_facts& facts, const std::vector<repeat_figures>& repeats) {
  return regatta::case_entry(config, facts, "ok", "", repeats);
}

// Returns the entry of a run with this loss in its first step, as it comes back from a file.
inline json entry(double first_loss, const case_config& config = two_workers()) {
  run_figures f = run(180, shared);
  set_losses(f, {first_loss, 1});
  f.loss_finite = std::isfinite(first_loss);
  return parsed(text_of(case_entry(config, weak(), {{f, {}, {}}})));
}

} // namespace regatta::test
