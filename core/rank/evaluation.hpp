// SPDX-License-Identifier: Apache-2.0
//
// Evaluates the model on held-out data (data.evaluation_path) after the last step and, with measure.evaluate_every,
// between steps, outside the timed region. Worker w evaluates batches w, w + workers, ... Running statistics are
// averaged over workers first, and the model's sums are added up over ranks, so that all workers report the same
// metric.
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
  // [any] wanted() returns whether the run evaluates at all; due() whether measure.evaluate_every asks for an
  // evaluation after `done` steps.
  static bool wanted(session& s) { return !s.job.config.data.evaluation_path.empty(); }
  static bool due(session& s, std::uint64_t done);
  // [main] Takes part in the collective calls of one run(). A rank that is no worker calls it once for each run() of
  // the workers. Returns whether the metric reached measure.target. Throws failure (run) if the case ends.
  static bool attend(session& s);

  // [main] Opens the data. Requires wanted(s). Throws failure: usage if the model has no evaluate(), or the
  // configuration or the model's inputs do not fit the data; plugin if an input of the model is invalid; run if a file
  // is damaged or has no sample. The session must outlive this object.
  explicit evaluation(session& s);
  // [compute] Collective on the control channel: call it on all workers, when all weights have arrived and no sum of
  // counts is pending (batches::finish_sum). Calls `prepare` with every batch before the model sees it, for example to
  // set its sparse tables. Returns the metric; std::nullopt if the model derives none from its sums. Throws failure:
  // by the status of a function of the model, run if a record of the data is damaged or the case ends.
  std::optional<double> run(const std::function<void(rg_batch&)>& prepare);
  // Returns whether the metric of the last run() reached measure.target: the same on all ranks, so that all stop after
  // the same step.
  bool reached_target() const { return reached_target_; }

private:
  static bool agree_on_target(session& s, bool reached);

  session& session_;
  std::unique_ptr<data_source> source_;
  std::uint64_t samples_; // of a batch
  batch_memory memory_;
  bool reached_target_ = false;
};

} // namespace regatta
