// SPDX-License-Identifier: Apache-2.0
//
// Evaluates the model on held-out data (data.evaluation_path) after the last step and, with measure.evaluate_every,
// between steps, outside the timed region. The workers share the batches in rotation. Running statistics are averaged
// over workers first, and the model's sums are added up over ranks, so that all workers report the same metric.
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
  // [any] wanted() returns whether the run evaluates at all; due() whether it does so between steps, after `done` of
  // them.
  static bool wanted(session& s) { return !s.job.config.data.evaluation_path.empty(); }
  static bool due(session& s, std::uint64_t done);
  // [main] Takes part in the collective calls of one evaluation. Called on a rank that is no worker.
  static void attend(session& s);

  // Opens the data. Throws failure if the data does not fit the model or the model has no evaluate().
  explicit evaluation(session& s);
  // [compute] Call it on all workers at once, when all weights have arrived. Calls `prepare` with every batch before
  // the model sees the batch. Returns the metric; std::nullopt if the model derives none from its sums.
  std::optional<double> run(const std::function<void(rg_batch&)>& prepare);

private:
  session& session_;
  std::unique_ptr<data_source> source_;
  std::uint64_t samples_; // of a batch
  batch_memory memory_;
};

} // namespace regatta
