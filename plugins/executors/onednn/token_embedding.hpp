// SPDX-License-Identifier: Apache-2.0
//
// Ops that select rows by indices from the batch.
#pragma once

#include "program.hpp"

namespace onednn {

// Rows of a table, scaled, plus an embedding of the position: learned (`places`), sinusoidal, or both.
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

// Selects positions of a sequence: the positions that an input names or, without such an input, the first ones.
class take_places final : public op {
public:
  take_places(std::string name, value* in, value* indices, value* out, const device& dev)
      : op(std::move(name), indices ? std::vector<value*>{in, indices} : std::vector<value*>{in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  std::size_t place(std::size_t sample, std::size_t m) const {
    return indices_ ? static_cast<std::size_t>(indices_[sample * output_->channels + m]) : m;
  }

  const device& dev_;
  std::size_t batch_ = 0;
  const std::int32_t* indices_ = nullptr;
};

// Returns the batch's indices for `input`, after checking that those of the first `samples` samples are at least 0 and
// less than `range`. Throws RG_E_OPERATION.
const std::int32_t* checked_indices(const run& r, const value& input, std::size_t samples, std::size_t range);

} // namespace onednn
