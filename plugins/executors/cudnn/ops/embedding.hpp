// SPDX-License-Identifier: Apache-2.0
//
// Lookups of rows in tables.
#pragma once

#include "ops/row_order.hpp"
#include "runtime/program.hpp"

#include <optional>

namespace cudnn {

// The ids of a batch, grouped by the table row that they name, in the staging: what kernels::scatter()
// (kernels/embedding.hpp) takes as row_groups.
class grouped_ids {
public:
  // Reserves space, from op::prepare(), for at most `ids` ids per batch and a table of `rows` rows.
  void reserve(staging& s, std::size_t ids, std::size_t rows);
  // Groups ids[0 .. count) and writes the result to the staging, from op::vary(). An id is the number of a row; ids
  // below 0 are skipped.
  void vary(const std::int32_t* ids, std::size_t count);
  // For k < *count(), the ids that name row rows()[k] are those at indices order()[begin()[k]] to
  // order()[begin()[k + 1] - 1] of the argument of vary(). The addresses are in device memory, and valid once the
  // staging is allocated. most() is an upper bound of *count().
  const std::int32_t* count() const { return header_.device(); }
  const std::int32_t* rows() const { return rows_.device(); }
  const std::int32_t* begin() const { return begin_.device(); }
  const std::int32_t* order() const { return order_.device(); }
  std::size_t most() const { return most_; }

private:
  std::size_t most_ = 0;
  std::optional<row_order> sorted_;
  staged<std::int32_t> header_, rows_, begin_, order_;
};

// y = scale * the table's row of the token + the row of its position in `position_table` + the position's sinusoidal
// code. vary() throws rg::error, RG_E_OPERATION, for a token that is no row of the table; it does not check padding
// samples, and forward() does not write their output.
class token_embedding : public op {
public:
  // `position_table` null: no such summand. The codes are added if `sinusoids`.
  token_embedding(std::string name, value* indices, value* out, weight* table, weight* position_table, double scale,
                  bool sinusoids);
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  std::size_t ids() const { return batch * positions(*output_); }
  weight *table_, *position_table_;
  float scale_;
  bool sinusoids_;
  buffer codes_; // sinusoidal codes of the positions
  grouped_ids grouped_;
};

// The rows of a sparse or dense table that the ids of a sample name: concatenated, or with `sum` summed. Padding
// samples yield zeros. vary() throws rg::error: RG_E_OPERATION for an id that is no row, RG_E_PLUGIN if its row of a
// sparse table is missing in the window.
class lookup : public op {
public:
  // `padding`: the id that stands for zeros instead of a row; -1: there is none.
  lookup(std::string name, value* ids, value* out, weight* table, std::int64_t padding, bool sum);
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override { return 2.0 * static_cast<double>(ids_ * table_->row()); }

private:
  weight* table_;
  std::int64_t padding_;
  bool sum_;
  std::size_t ids_;         // per sample
  staged<std::int32_t> at_; // row of each id in a dense table or in a sparse table's window of this step; -1: padding
  grouped_ids grouped_;
};

} // namespace cudnn
