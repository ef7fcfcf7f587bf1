// SPDX-License-Identifier: Apache-2.0
//
// Lookups in tables, sparse or dense.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

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
  void place(const run& r);

  const device& dev_;
  weight* table_;
  std::int64_t padding_;
  bool sum_;
  std::size_t batch_ = 0, ids_, dim_; // ids a sample, elements of a row
  slot slot_ = no_slot;
  std::uint32_t* at_ = nullptr; // [batch, ids]: numbers of their rows in this step's table
};

// Points a sparse table to the rows and gradients that the engine supplies for a step or an evaluation; they must stay
// valid until its end. Throws as sparse_table::take().
void take_rows(executors::graph_tensor& table, const rg_table_rows& rows);

} // namespace onednn
