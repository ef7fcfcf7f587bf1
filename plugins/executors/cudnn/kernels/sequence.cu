// SPDX-License-Identifier: Apache-2.0
#include "kernels/sequence.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

template <class T> void take_of(cudaStream_t s, selection_args k, const T* x, T* y) {
  for_each(s, k.samples * k.taken * k.size, [=] REGATTA_DEVICE(index_t i) {
    const index_t row = i / k.size, sample = row / k.taken;
    const index_t from = k.indices ? static_cast<index_t>(k.indices[row]) : row % k.taken;
    y[i] = x[(sample * k.positions + from) * k.size + i % k.size];
  });
}
// A position may be selected several times; its gradient is the sum, in order.
template <class T> void give_of(cudaStream_t s, selection_args k, const T* dy, T* dx, bool add) {
  for_each(s, k.samples * k.positions * k.size, [=] REGATTA_DEVICE(index_t i) {
    const index_t row = i / k.size, sample = row / k.positions, at = row % k.positions;
    float sum = 0;
    for (index_t m = 0; m < k.taken; ++m) {
      const index_t from = k.indices ? static_cast<index_t>(k.indices[sample * k.taken + m]) : m;
      if (from == at) sum += to_float(dy[(sample * k.taken + m) * k.size + i % k.size]);
    }
    put(dx + i, sum, add);
  });
}

} // namespace

void select_positions(cudaStream_t s, dtype t, const selection_args& k, const void* x, void* y) {
  by_type(t, [&](auto* of) { take_of(s, k, as(of, x), as(of, y)); });
}

void select_positions_gradient(cudaStream_t s, dtype t, const selection_args& k, const void* dy, void* dx, bool add) {
  by_type(t, [&](auto* of) { give_of(s, k, as(of, dy), as(of, dx), add); });
}

} // namespace cudnn::kernels
