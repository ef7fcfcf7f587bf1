// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence.hpp"

#include "../common/weights.hpp"
#include "kernels/sequence.hpp"

namespace cudnn {

void select_positions::vary(const run& r) {
  if (inputs_.size() < 2) return;
  const value& in = *inputs_[1].from;
  executors::checked_indices(r.batch, static_cast<std::size_t>(in.input), in.name, in.elements(), r.samples(),
                             positions(*inputs_[0].from));
}

void select_positions::forward(device& d, const run& r) {
  // The indices of padding samples may be no positions.
  const kernels::selection_args k{r.samples(), positions(*inputs_[0].from), positions(*output_), features(*output_),
                                  inputs_.size() > 1 ? inputs_[1].from->indices() : nullptr};
  kernels::select_positions(d.stream, d.computes.type, k, x(), y());
}

void select_positions::backward(device& d, const run&) {
  if (!dx()) return;
  const kernels::selection_args k{batch, positions(*inputs_[0].from), positions(*output_), features(*output_),
                                  inputs_.size() > 1 ? inputs_[1].from->indices() : nullptr};
  kernels::select_positions_gradient(d.stream, d.computes.type, k, dy(), dx(), inputs_[0].add);
}

} // namespace cudnn
