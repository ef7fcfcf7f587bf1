// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.hpp"

#include "kernels/elementwise.hpp"
#include "runtime/memory_plan.hpp"
#include "tuning/kernel_choices.hpp"

#include <cmath>

namespace cudnn {

attention::attention(std::string name, value* query, value* key, value* values, value* indices, value* out,
                     const shape& s)
    : op(std::move(name), {values, query, key, indices}, out), shape_(s), dropout_(s.dropout, s.layer) {}

void attention::prepare(device& d) {
  if (shape_.dropout > 0) {
    if (scores() > UINT32_MAX)
      throw rg::error(RG_E_UNSUPPORTED,
                      name_ + ": too many scores for the 32-bit counters of its kernels: use a smaller batch or "
                              "shorter sequences");
    dropout_.reserve(d.varying);
  }
  flash_ = flash_attention::of(d.planning, {.type = d.computes.type,
                                            .samples = static_cast<std::int64_t>(batch),
                                            .heads = static_cast<std::int64_t>(shape_.heads),
                                            .queries = static_cast<std::int64_t>(queries()),
                                            .keys = static_cast<std::int64_t>(keys()),
                                            .size = static_cast<std::int64_t>(width() / shape_.heads),
                                            .causal = shape_.causal,
                                            .dropout = shape_.dropout});
  if (flash_) {
    mask_.reserve(batch * keys() * size_of(d.computes.type));
    first_.reserve(batch * sizeof(std::uint32_t));
    statistics_.reserve(flash_->statistics() * sizeof(float));
    d.workspace.reserve(flash_->workspace());
    d.scratch.reserve(kept_bytes() + aligned(flash_->statistics() * sizeof(float)) + spare_bytes(0) + spare_bytes(1) +
                      spare_bytes(2));
    return;
  }
  const std::size_t bytes = scores() * size_of(d.computes.type);
  probabilities_.reserve(bytes);
  dropped_.reserve(bytes); // in the backward pass it holds the gradients of the scores
  d.scratch.reserve(scores() * sizeof(float));
}

// Computes addresses: d.scratch may be reallocated until all ops are prepared.
void attention::attach(device& d, kernel_choices& c) {
  c.note(name_ + " flash", flash_ ? 1 : 0);
  if (flash_) return;
  const std::size_t element = size_of(d.computes.type), size = width() / shape_.heads;
  std::vector<std::byte*> all(static_cast<std::size_t>(of::count) * count());
  const auto fill = [&](of o, void* from, std::size_t rows, std::size_t row, std::size_t apart,
                        std::size_t bytes) { // rows per sample, elements per row, elements from head to head
    if (!from) return;
    for (std::size_t i = 0; i < count(); ++i)
      all[static_cast<std::size_t>(o) * count() + i] =
          static_cast<std::byte*>(from) + (i / shape_.heads * rows * row + i % shape_.heads * apart) * bytes;
  };
  fill(of::query, inputs_[1].from->data, queries(), width(), size, element);
  fill(of::key, inputs_[2].from->data, keys(), width(), size, element);
  fill(of::values, inputs_[0].from->data, keys(), width(), size, element);
  fill(of::out, output_->data, queries(), width(), size, element);
  fill(of::query_gradient, dx(1), queries(), width(), size, element);
  fill(of::key_gradient, dx(2), keys(), width(), size, element);
  fill(of::values_gradient, dx(0), keys(), width(), size, element);
  fill(of::out_gradient, output_->gradient, queries(), width(), size, element);
  const std::size_t matrix = queries() * keys();
  fill(of::probability, probabilities_.get<void>(), shape_.heads, matrix, matrix, element);
  fill(of::other, dropped_.get<void>(), shape_.heads, matrix, matrix, element);
  fill(of::score, d.scratch.get<void>(), shape_.heads, matrix, matrix, sizeof(float));
  pointers_.reserve(all.size() * sizeof(void*));
  d.upload(pointers_.get<void>(), all.data(), all.size() * sizeof(void*));
  d.synchronize(); // the copy must end before `all` is destroyed
}

kernels::attention_args attention::how() const {
  const std::size_t size = width() / shape_.heads;
  return {.samples = batch,
          .heads = static_cast<std::uint32_t>(shape_.heads),
          .queries = static_cast<std::uint32_t>(queries()),
          .keys = static_cast<std::uint32_t>(keys()),
          .causal = shape_.causal,
          .factor = static_cast<float>(1 / std::sqrt(static_cast<double>(size))),
          .keys_of = inputs_[3].from->indices()};
}

void attention::forward(device& d, const run& r) {
  if (flash_) return flash_forward(d, r);
  const auto n = static_cast<int>(queries()), m = static_cast<int>(keys()), row = static_cast<int>(width());
  const auto size = static_cast<int>(width() / shape_.heads), all_heads = static_cast<int>(count());
  multiply_batched(d, {.m = n, .n = m, .k = size, .b_across = true, .a_row = row, .b_row = row, .c_row = m},
                   all_of<const void>(of::query), all_of<const void>(of::key), dtype::f32, all_of<void>(of::score),
                   all_heads, false, name_.c_str());
  const bool drops = r.training && shape_.dropout > 0;
  kernels::softmax(d.stream, d.computes.type, how(), d.scratch.get(), probabilities_.get<void>(),
                   drops ? dropped_.get<void>() : nullptr, dropout_.of(r));
  multiply_batched(d, {.m = n, .n = size, .k = m, .a_row = m, .b_row = row, .c_row = row},
                   all_of<const void>(drops ? of::other : of::probability), all_of<const void>(of::values),
                   d.computes.type, all_of<void>(of::out), all_heads, false, name_.c_str());
}

// With a the probabilities after dropout: dv = a^T dy; da = dy v^T; ds = da through dropout and softmax; dq = ds k;
// dk = ds^T q.
void attention::backward(device& d, const run& r) {
  if (flash_) return flash_backward(d, r);
  const auto n = static_cast<int>(queries()), m = static_cast<int>(keys()), row = static_cast<int>(width());
  const auto size = static_cast<int>(width() / shape_.heads), all_heads = static_cast<int>(count());
  const bool drops = shape_.dropout > 0;
  if (dx(0))
    multiply_batched(d, {.m = m, .n = size, .k = n, .a_across = true, .a_row = m, .b_row = row, .c_row = row},
                     all_of<const void>(drops ? of::other : of::probability), all_of<const void>(of::out_gradient),
                     d.computes.type, all_of<void>(of::values_gradient), all_heads, inputs_[0].add, name_.c_str());
  if (!dx(1) && !dx(2)) return;
  multiply_batched(d, {.m = n, .n = m, .k = size, .b_across = true, .a_row = row, .b_row = row, .c_row = m},
                   all_of<const void>(of::out_gradient), all_of<const void>(of::values), dtype::f32,
                   all_of<void>(of::score), all_heads, false, name_.c_str());
  kernels::softmax_gradient(d.stream, d.computes.type, how(), probabilities_.get<void>(), d.scratch.get(),
                            dropout_.of(r), dropped_.get<void>());
  if (dx(1))
    multiply_batched(d, {.m = n, .n = size, .k = m, .a_row = m, .b_row = row, .c_row = row},
                     all_of<const void>(of::other), all_of<const void>(of::key), d.computes.type,
                     all_of<void>(of::query_gradient), all_heads, inputs_[1].add, name_.c_str());
  if (dx(2))
    multiply_batched(d, {.m = m, .n = size, .k = n, .a_across = true, .a_row = m, .b_row = row, .c_row = row},
                     all_of<const void>(of::other), all_of<const void>(of::query), d.computes.type,
                     all_of<void>(of::key_gradient), all_heads, inputs_[2].add, name_.c_str());
}

// The mask of dropout is at the start of the scratch. Each pass draws it again: keeping it would take as much memory as
// the scores.
flash_attention::values attention::flash_values(device& d, const run& r) const {
  const bool drops = r.training && shape_.dropout > 0;
  if (drops) kernels::dropout_mask(d.stream, d.computes.type, how(), dropout_.of(r), d.scratch.get<void>());
  return {.query = x(1),
          .key = x(2),
          .value = x(0),
          .mask = mask_.get<void>(),
          .out = y(),
          .statistics = statistics_.get(),
          .kept = drops ? d.scratch.get<void>() : nullptr};
}

// Queries without visible keys get zeros, and in flash_backward() zero gradients, so nothing flows back
// through them.
void attention::flash_forward(device& d, const run& r) {
  auto* first = first_.get<std::uint32_t>();
  kernels::key_mask(d.stream, d.computes.type, how(), least_mask, mask_.get<void>(), first);
  flash_->forward(d.dnn, flash_values(d, r), d.workspace.get<void>(), name_.c_str());
  kernels::clear_blind_queries(d.stream, d.computes.type, how(), first, y(), features(*output_));
}

std::size_t attention::kept_bytes() const {
  return shape_.dropout > 0 ? aligned(scores() * size_of(output_->type)) : 0;
}

std::size_t attention::spare_bytes(std::size_t i) const {
  const edge& e = inputs_[i];
  if (e.from->needs_gradient && !e.add) return 0;
  return aligned(batch * e.from->elements() * size_of(e.from->type));
}

// cuDNN always writes all three gradients and overwrites their memory. A gradient that is not needed, or is added to an
// existing one, is therefore written to the scratch first.
void attention::flash_backward(device& d, const run& r) {
  kernels::clear_blind_queries(d.stream, d.computes.type, how(), first_.get<std::uint32_t>(), output_->gradient,
                               features(*output_));
  auto* const sums = d.scratch.get<std::byte>() + kept_bytes();
  auto* spare = sums + aligned(flash_->statistics() * sizeof(float));
  void* made[3];
  for (std::size_t i = 0; i < 3; ++i) {
    made[i] = spare_bytes(i) ? spare : dx(i);
    spare += spare_bytes(i);
  }
  flash_->backward(
      d.dnn, flash_values(d, r),
      {.out = dy(), .query = made[1], .key = made[2], .value = made[0], .sums = reinterpret_cast<float*>(sums)},
      d.workspace.get<void>(), name_.c_str());
  for (std::size_t i = 0; i < 3; ++i)
    if (dx(i) && made[i] != dx(i))
      kernels::copy(d.stream, d.computes.type, made[i], dx(i), batch * inputs_[i].from->elements(), true);
}

std::size_t attention::held() const {
  return probabilities_.bytes() + dropped_.bytes() + statistics_.bytes() + mask_.bytes() + first_.bytes();
}

double attention::flops() const {
  return 3 * 4.0 * static_cast<double>(queries() * keys() * width());
}

} // namespace cudnn
