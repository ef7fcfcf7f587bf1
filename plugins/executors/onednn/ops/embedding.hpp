// SPDX-License-Identifier: Apache-2.0
//
// Ops that select rows by indices from the batch.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Rows of a table times `scale`, plus an unscaled embedding of the position: learned (`places`, a table with a row per
// position, or null), sinusoidal, both, or none. `indices` is an input of type RG_I32; forward() throws RG_E_OPERATION
// if an index is no row of the table.
class token_embedding final : public op {
public:
  token_embedding(std::string name, value* indices, value* out, weight* table, weight* places, double scale,
                  bool sinusoids, const device& dev);
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  std::size_t rows() const { return static_cast<std::size_t>(table_->info.shape[0]); }

  const device& dev_;
  weight *table_, *places_;
  float scale_;
  std::size_t batch_ = 0;
  std::vector<float> sinusoids_; // [positions, features]
  const std::int32_t* indices_ = nullptr;
};

// Selects positions of a sequence: those in the input `indices`, of type RG_I32, or the first ones if `indices` is
// null; as many as the output has. A position may be selected several times. forward() throws RG_E_OPERATION for a
// position that the sequence does not have.
class take_places final : public op {
public:
  take_places(std::string name, value* in, value* indices, value* out, const device& dev)
      : op(std::move(name), indices ? std::vector<value*>{in, indices} : std::vector<value*>{in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  // The position that is the output's position m.
  std::size_t place(std::size_t sample, std::size_t m) const {
    return indices_ ? static_cast<std::size_t>(indices_[sample * output_->channels + m]) : m;
  }

  const device& dev_;
  std::size_t batch_ = 0;
  const std::int32_t* indices_ = nullptr;
};

// Returns the batch's indices for `input`, an input of the network; they are valid as long as the batch. Throws
// RG_E_OPERATION if an index of the first `samples` samples is less than 0, or `range` or more.
const std::int32_t* checked_indices(const run& r, const value& input, std::size_t samples, std::size_t range);

} // namespace onednn
