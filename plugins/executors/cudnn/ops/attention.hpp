// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/layer_shapes.hpp"
#include "kernels/attention.hpp"
#include "lib/flash_attention.hpp"
#include "ops/dropout.hpp"

namespace cudnn {

// dropout(softmax(q k^T / sqrt(d))) v per head. If cuDNN has an engine, attention is one kernel of it, which keeps one
// value per row for the backward pass (flash_attention.hpp); a mask tells it which probabilities dropout keeps, because
// its own random numbers differ from the CPU's. Otherwise cuBLAS computes each GEMM for all heads of all samples in one
// call; scores and the gradients of probabilities are fp32 in every precision, and the probabilities are kept. The
// output of a query without visible keys is zeros.
class attention : public op {
public:
  using shape = executors::attention_shape;
  // `indices`: an input with one token per key; a key whose token is 0 is not visible. Query, key, values and out are
  // sequences; heads divide their features.
  attention(std::string name, value* query, value* key, value* values, value* indices, value* out, const shape& s);
  void prepare(device& d) override;
  void attach(device& d, kernel_choices&) override;
  void vary(const run& r) override { dropout_.vary(r.batch); }
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override;
  std::size_t held() const override;

private:
  flash_attention::values flash_values(device& d, const run& r) const; // of this pass
  void flash_forward(device& d, const run& r);
  void flash_backward(device& d, const run& r);
  std::size_t kept_bytes() const;               // of flash_attention::values::kept, in the scratch
  std::size_t spare_bytes(std::size_t i) const; // scratch of gradient i; 0: cuDNN writes it in place
  // inputs_ are values, queries, keys and the keys' indices, because the backward pass computes gradients in this
  // order.
  std::size_t queries() const { return positions(*output_); }
  std::size_t keys() const { return positions(*inputs_[0].from); }
  std::size_t width() const { return features(*output_); }
  std::size_t count() const { return batch * shape_.heads; } // GEMMs per batched call
  std::size_t scores() const { return count() * queries() * keys(); }
  kernels::attention_args how() const;
  // The arrays of pointers that cuBLAS takes: one pointer for every head of every sample. `other`: in dropped_, the
  // probabilities after dropout, which the backward pass overwrites with the gradients of the scores. `score`: in
  // device::scratch.
  enum class of : std::size_t {
    query,
    key,
    values,
    out,
    query_gradient,
    key_gradient,
    values_gradient,
    out_gradient,
    probability,
    other,
    score,
    count
  };
  template <class T> T* const* all_of(of o) const {
    return pointers_.get<T*>() + static_cast<std::size_t>(o) * count();
  }

  shape shape_;
  dropout_seed dropout_;
  buffer probabilities_, dropped_, pointers_; // without flash_
  std::unique_ptr<flash_attention> flash_;
  buffer mask_, first_, statistics_; // for flash_: mask of the keys, first visible key of each sample, statistics
};

} // namespace cudnn
