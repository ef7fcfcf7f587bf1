// SPDX-License-Identifier: Apache-2.0
//
// Ops on positions of sequences.
#pragma once

#include "program.hpp"
#include "row_order.hpp"

#include <optional>

namespace cudnn {

class layer_norm : public op {
public:
  layer_norm(std::string name, value* in, value* out, weight* scale, weight* bias, double epsilon);
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  std::size_t rows() const { return batch * places(*output_); }
  weight *scale_, *bias_;
  float epsilon_;
  buffer mean_, inverse_; // per row
};

// Selects positions of a sequence: those that an input names, or the first ones if there is no such input.
class take_places : public op {
public:
  take_places(std::string name, value* in, value* indices, value* out)
      : op(std::move(name), indices ? std::vector<value*>{in, indices} : std::vector<value*>{in}, out) {}
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

// The ids of a batch, sorted by row as lookups.hpp's scatter() expects them.
class named_rows {
public:
  void ask(staging& s, std::size_t ids, std::size_t rows);
  void vary(const std::int32_t* ids, std::size_t count);
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

// Rows of a table, scaled, plus an embedding of each position.
class token_embedding : public op {
public:
  token_embedding(std::string name, value* indices, value* out, weight* table, weight* places, double scale,
                  bool sinusoids);
  void prepare(device& d) override;
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  std::size_t ids() const { return batch * places(*output_); }
  weight *table_, *places_;
  float scale_;
  bool sinusoids_;
  buffer codes_; // sinusoidal codes of the positions
  named_rows named_;
};

// The rows of a sparse or dense table that the ids name, concatenated or summed.
class lookup : public op {
public:
  // `padding`: an id that is skipped, or -1.
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
  staged<std::int32_t> at_; // row of each id in the table's window of this step; -1: padding
  named_rows named_;
};

} // namespace cudnn
