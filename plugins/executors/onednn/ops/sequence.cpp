// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence.hpp"

#include "ops/embedding.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cstring>

namespace onednn {

void select_positions::plan(memory_plan& m) {
  batch_ = m.batch();
}

void select_positions::forward(run& r) {
  const value& in = *inputs_[0].from;
  const std::size_t samples = executors::valid_samples(*r.batch);
  if (inputs_.size() > 1) indices_ = checked_indices(r, *inputs_[1].from, samples, in.positions());
  const std::size_t size = in.features(), taken = output_->positions();
  std::fill_n(output_->data + samples * taken * size, (batch_ - samples) * taken * size, 0.0F);
  parallel(dev_, samples, [&](std::size_t s) {
    for (std::size_t m = 0; m < taken; ++m)
      std::memcpy(output_->data + (s * taken + m) * size, in.data + s * in.stride + position(s, m) * size,
                  size * sizeof(float));
  });
}

void select_positions::backward(run&) {
  const edge& e = inputs_[0];
  if (!e.gradient) return;
  const std::size_t size = output_->features(), taken = output_->positions(), all = e.from->stride;
  parallel(dev_, batch_, [&](std::size_t s) {
    std::fill_n(e.gradient + s * all, all, 0.0F);
    for (std::size_t m = 0; m < taken; ++m)
      dev_.kernels->elementwise.add(e.gradient + s * all + position(s, m) * size,
                                    output_->gradient + (s * taken + m) * size, size);
  });
}

} // namespace onednn
