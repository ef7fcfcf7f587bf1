// SPDX-License-Identifier: Apache-2.0
//
// The results of a campaign, computed from its records: result.json, schema regatta.result/1.
#pragma once

#include "results/campaign_records.hpp"

#include <cstddef>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

class result_document {
public:
  // Both arguments must outlive this object, and the experiment must not change.
  result_document(const experiment& e, campaign_records& records);

  // Computes the entries of the cases that `record` changes again. Of a run these are all cases of its round; of a
  // failure, or of a record of kind "sampling" (measure.precision: the length of the case's runs, or why it gets no
  // more repeats), its case. Requires that `record` was added to the records. Frees the figures of a case that has all
  // of its repeats and no later failure.
  void update(const nlohmann::json& record);

  // Returns the entry of a case, valid until the next update(); null: it has no failure and no repeat whose baselines
  // and contention control have ended.
  const nlohmann::json& entry(std::size_t index) const { return cases_.at(index).entry; }
  std::size_t finished_cases() const; // those with all repeats and no later failure
  // Returns result.json: schema, context, "simulated" (true) if a case was simulated, and the entries of all cases that
  // have one, in the order of the cases. A case that lacks some repeats has the status "partial".
  nlohmann::json document() const;

private:
  void update_case(std::size_t index);

  struct case_result {
    nlohmann::json entry;
    bool complete = false;
  };

  const experiment& experiment_;
  campaign_records& records_;
  std::vector<case_result> cases_;
};

} // namespace regatta
