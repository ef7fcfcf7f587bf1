// SPDX-License-Identifier: Apache-2.0
//
// Measures the model on held-out data (data.evaluation_path): after the last step, and, with measure.evaluate_every,
// between steps, outside what is timed. Every worker takes its turn of the batches; running statistics are averaged over
// workers first, and the model's sums are added up over ranks, so that the metric is the same on all.
#pragma once

#include "data/source.hpp"
#include "rank/batch_memory.hpp"
#include "rank/session.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace regatta {

class evaluation {
public:
  // Whether there is any at all, and whether there is one when `done` steps are over and others follow. [any]
  static bool wanted(session& s) { return !s.job.config.data.evaluation_path.empty(); }
  static bool due(session& s, std::uint64_t done);
  // A rank that is no worker keeps the meetings of one evaluation. [main]
  static void attend(session& s);

  // Opens the data; throws failure where it does not fit the model or the model cannot evaluate.
  explicit evaluation(session& s);
  // [compute] All workers at once; weights must be all there. `prepare` is shown every batch before the model is. The
  // metric; nothing where the model makes none of its sums.
  std::optional<double> run(const std::function<void(rg_batch&)>& prepare);

private:
  session& session_;
  std::unique_ptr<data_source> source_;
  std::uint64_t samples_; // of a batch
  batch_memory memory_;
};

} // namespace regatta
