// SPDX-License-Identifier: Apache-2.0
#include "rank/evaluation.hpp"

#include "base/failure.hpp"
#include "measure/target.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

bool evaluation::due(session& s, std::uint64_t done) {
  const auto every = static_cast<std::uint64_t>(s.job.config.measure.evaluate_every);
  return wanted(s) && every > 0 && done % every == 0;
}

bool evaluation::attend(session& s) {
  for (const rg_tensor& t : s.model().tensors())
    if (t.kind == RG_TENSOR_STATE) s.control.sum("state", std::vector<double>(rg::storage_of(t), 0.0));
  s.control.sum("metric", std::vector<double>(s.model().info().metric_sums, 0.0));
  return agree_on_target(s, false);
}

// Worker 0 decides. A rank that decided for itself might go on alone: metrics computed on different machines may differ
// in the last bit.
bool evaluation::agree_on_target(session& s, bool reached) {
  if (s.job.config.measure.target == 0) return false;
  return s.control.sum("target", {reached && s.cluster.worker == 0 ? 1.0 : 0.0})[0] > 0;
}

evaluation::evaluation(session& s) : session_(s), samples_(s.job.micro_batch()), memory_(s.model().inputs(), samples_) {
  if (!s.model().functions().evaluate)
    throw failure(exit_code::usage,
                  fmt::format("data.evaluation_path: model {} cannot evaluate", s.job.config.model.id));
  s.control.operation("opening the data to evaluate on", pace::unseen);
  source_ = make_evaluation_source(s.job.config.data, s.model().inputs(), s.job.config.seed);
}

std::optional<double> evaluation::run(const std::function<void(rg_batch&)>& prepare) {
  session_.control.operation("evaluating", pace::rare);
  model_instance& model = session_.model();
  const std::uint32_t workers = session_.cluster.workers;
  session_.average_states();
  std::vector<double> sums(model.info().metric_sums, 0.0);
  const std::uint64_t size = source_->size(), count = (size + samples_ - 1) / samples_;
  for (std::uint64_t b = static_cast<std::uint64_t>(session_.cluster.worker); b < count; b += workers) {
    const std::uint64_t first = b * samples_;
    source_->fill(0, size, first, samples_, memory_.pointers());
    rg_batch batch = memory_.batch();
    batch.valid = std::min(samples_, size - first);
    batch.first_sample = first;
    batch.seed = session_.job.config.seed;
    prepare(batch);
    model.check_status(model.functions().evaluate(model.self(), &batch, sums.data()), "evaluate");
    session_.control.status().worked();
  }
  const auto total = session_.control.sum("metric", sums);
  std::optional<double> value;
  if (model.functions().metric && !total.empty())
    model.check_status(model.functions().metric(model.self(), total.data(), &value.emplace()), "metric");
  const char* const name = model.info().metric;
  reached_target_ =
      agree_on_target(session_, value && reaches_target(session_.job.config.measure, name ? name : "metric", *value));
  return value;
}

} // namespace regatta
