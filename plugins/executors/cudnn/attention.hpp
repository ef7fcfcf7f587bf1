// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/layer_shapes.hpp"
#include "elementwise.hpp"
#include "flash.hpp"
#include "rows.hpp"

namespace cudnn {

// dropout(softmax(q k^T / sqrt(d))) v by head. Where cuDNN has an engine for it, that is one kernel, which keeps a number a
// row for the backward pass (flash.hpp); it is told what dropout keeps, for it would draw otherwise than the CPU. Else all
// heads of all samples are one call of cuBLAS for each product; scores, and the slopes of probabilities, are floats in any
// precision, and the probabilities are kept.
class attention : public op {
public:
  using shape = executors::attention_shape;
  attention(std::string name, value* query, value* key, value* values, value* indices, value* out, const shape& s);
  void prepare(device& d) override;
  void attach(device& d, choices&) override;
  void vary(const run& r) override { drawn_.vary(r.batch); }
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;
  std::size_t held() const override;

private:
  flash::values flash_values(device& d, const run& r) const; // of this pass
  void flash_forward(device& d, const run& r);
  void flash_backward(device& d, const run& r);
  std::size_t kept_bytes() const;
  std::size_t spare_bytes(std::size_t i) const; // of a gradient that cannot go where it belongs at once
  // Inputs are the values, queries, keys and the keys' indices: gradients are written in this order.
  std::size_t queries() const { return places(*output_); }
  std::size_t keys() const { return places(*inputs_[0].from); }
  std::size_t width() const { return features(*output_); }
  std::size_t count() const { return batch * shape_.heads; } // of products
  std::size_t scores() const { return count() * queries() * keys(); }
  kernels::attending how() const;
  // Where every head of every sample begins: the arrays that cuBLAS takes.
  enum class of : std::size_t {
    query,
    key,
    values,
    out,
    query_slope,
    key_slope,
    values_slope,
    out_slope,
    probability,
    other,
    score,
    count
  };
  template <class T> T* const* all_of(of o) const {
    return pointers_.get<T*>() + static_cast<std::size_t>(o) * count();
  }

  shape shape_;
  drawn drawn_;
  buffer probabilities_, dropped_, pointers_;
  std::unique_ptr<flash> flash_;
  buffer mask_, first_, statistics_; // for it
};

} // namespace cudnn
