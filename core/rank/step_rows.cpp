// SPDX-License-Identifier: Apache-2.0
#include "rank/step_rows.hpp"

#include <iterator>
#include <span>

#include <regatta/plugin.hpp>

namespace regatta {

void step_rows::read(const rg_batch& batch) {
  const auto& windows = tables_.windows();
  rows_.assign(windows.size(), rg::make_versioned<rg_rows>());
  for (std::size_t t = 0; t < windows.size(); ++t) rows_[t].tensor = windows[t].tensor;
  model_.check_status(model_.functions().rows(model_.self(), &batch, rows_.data()), "rows");
}

// Adds the rows of a batch to those of the batches before.
void step_rows::merge(bool first) {
  unions_.resize(rows_.size());
  for (std::size_t t = 0; t < rows_.size(); ++t) {
    const std::span rows(rows_[t].rows, rows_[t].count);
    merged_.clear();
    if (first)
      merged_.assign(rows.begin(), rows.end());
    else
      std::set_union(unions_[t].begin(), unions_[t].end(), rows.begin(), rows.end(), std::back_inserter(merged_));
    unions_[t].swap(merged_);
  }
}

void step_rows::set(const rg_batch& batch) {
  read(batch);
  tables_.set_rows(rows_);
}

void step_rows::set(std::uint64_t micro_batches, const std::function<rg_batch(std::uint64_t m)>& batch) {
  if (micro_batches == 1) return set(batch(0));
  for (std::uint64_t m = 0; m < micro_batches; ++m) {
    read(batch(m));
    merge(m == 0);
  }
  for (std::size_t t = 0; t < rows_.size(); ++t) {
    rows_[t].rows = unions_[t].data();
    rows_[t].count = unions_[t].size();
  }
  tables_.set_rows(rows_);
}

} // namespace regatta
