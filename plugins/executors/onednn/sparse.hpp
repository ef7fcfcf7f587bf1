// SPDX-License-Identifier: Apache-2.0
//
// Lookups in tables, sparse or dense.
#pragma once

#include "program.hpp"

namespace onednn {

// Rows of the table that the ids name, one after the other or summed.
class embedding final : public op {
public:
  // `padding`: an id that stands for nothing, or -1.
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
  std::uint32_t* at_ = nullptr; // [batch, ids]: where their rows lie in the table as this step has it
};

// Takes the rows of a sparse table as the engine hands them over for a step or an evaluation.
void take_rows(executors::graph_tensor& table, const rg_table_rows& rows);

} // namespace onednn
