// SPDX-License-Identifier: Apache-2.0
#include "lookups.hpp"

#include <algorithm>

namespace executors {

void check_ids(const rg_tensor& table, const rg_batch& b, const std::int32_t* ids, std::size_t count,
               std::size_t each) {
  const auto rows = static_cast<std::uint64_t>(table.shape[0]);
  bool fine = true; // a loop without branches is vectorised
  for (std::size_t i = 0; i < count; ++i) fine &= static_cast<std::uint32_t>(ids[i]) < rows;
  if (fine) return;
  for (std::size_t i = 0; i < count; ++i)
    if (static_cast<std::uint32_t>(ids[i]) >= rows)
      throw rg::error(RG_E_OPERATION, "sample " + std::to_string(i / each) + " of step " + std::to_string(b.step) +
                                          " has id " + std::to_string(ids[i]) + ", but " + table.name + " has " +
                                          std::to_string(table.shape[0]) + " rows");
}

void fail_missing_row(const rg_tensor& table, const rg_batch& b, std::int32_t id) {
  throw rg::error(RG_E_PLUGIN, std::string(table.name) + ": row " + std::to_string(id) + " of step " +
                                   std::to_string(b.step) + " is not among the rows that the step got");
}

std::uint64_t sparse_table::most_rows(std::size_t batch, const rg_tensor& table) const {
  std::uint64_t ids = 0;
  for (const lookup& l : lookups) ids += batch * l.ids;
  return std::min(ids, static_cast<std::uint64_t>(table.shape[0]));
}

void sparse_table::prepare(const rg_tensor& table, std::uint64_t most) {
  index.emplace(static_cast<std::uint64_t>(table.shape[0]));
  touched.reserve(most);
}

void sparse_table::collect(const rg_tensor& table, const rg_batch& batch) {
  index->clear();
  for (const lookup& l : lookups) {
    const auto* ids = static_cast<const std::int32_t*>(batch.inputs[l.input]);
    const std::size_t n = valid_samples(batch) * l.ids;
    check_ids(table, batch, ids, n, l.ids);
    for (std::size_t i = 0; i < n; ++i)
      if (ids[i] != l.padding) index->insert(static_cast<std::uint64_t>(ids[i]));
  }
  index->list(touched);
}

void sparse_table::take(const rg_tensor& table, std::uint32_t number, const rg_table_rows& rows) {
  if (rows.tensor != number)
    throw rg::error(RG_E_PLUGIN,
                    "the rows of tensor " + std::to_string(rows.tensor) + " where those of " + table.name + " belong");
  if (!index->assign({rows.rows, rows.count}))
    throw rg::error(RG_E_PLUGIN, std::string("the rows of ") + table.name + " do not ascend, or are not in the table");
  count = rows.count;
}

} // namespace executors
