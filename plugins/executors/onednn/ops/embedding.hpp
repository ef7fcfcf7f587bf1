// SPDX-License-Identifier: Apache-2.0
//
// Ops that select rows of tables by ids or tokens.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Rows of a table times `scale`, plus an unscaled embedding of the position: learned (`positions`, a table with a row
// per position, or null), sinusoidal, both, or none. `indices` is an input of type RG_I32; forward() throws
// RG_E_OPERATION if an index is no row of the table. In an evaluation, padding samples yield zeros.
class token_embedding final : public op {
public:
  token_embedding(std::string name, value* indices, value* out, weight* table, weight* positions, double scale,
                  bool sinusoids, const device& dev);
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  std::size_t rows() const { return static_cast<std::size_t>(table_->info.shape[0]); }

  const device& dev_;
  weight *table_, *positions_;
  float scale_;
  std::size_t batch_ = 0;
  std::vector<float> sinusoids_; // [positions, features]
  const std::int32_t* indices_ = nullptr;
};

// Returns all indices of the batch for `input`, an input of the network; they are valid as long as the batch. Throws
// RG_E_OPERATION if an index of the first `samples` samples is less than 0, or `range` or more.
const std::int32_t* checked_indices(const run& r, const value& input, std::size_t samples, std::size_t range);

// Looks up the rows of a table by id; the output of a sample is its rows, concatenated or summed. In an evaluation,
// padding samples yield zeros. forward() throws RG_E_OPERATION for an id outside of the table, and RG_E_PLUGIN for one
// whose row is missing in the step's window.
class embedding final : public op {
public:
  // `ids` is an input of type RG_I32. `padding` is an id that counts as a row of zeros, or -1. The constructor adds
  // itself to the lookups of a sparse table.
  embedding(std::string name, value* ids, value* out, weight* table, std::int64_t padding, bool sum, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  double flops() const override;

private:
  // Sets at_ to the numbers of the rows that the batch looks up.
  void find_rows(const run& r);

  const device& dev_;
  weight* table_;
  std::int64_t padding_;
  bool sum_;
  std::size_t batch_ = 0, ids_, dim_; // ids a sample, elements of a row
  slot slot_ = no_slot;
  std::uint32_t* at_ = nullptr; // [batch, ids]: numbers of their rows in this step's table; no_row: zeros
};

// Points a sparse table to the rows and gradients that the engine supplies for a step or an evaluation; they must stay
// valid until its end. Throws rg::error, RG_E_PLUGIN, if the rows belong to another tensor, do not ascend, or are
// outside of the table.
void take_rows(executors::graph_tensor& table, const rg_table_rows& rows);

} // namespace onednn
