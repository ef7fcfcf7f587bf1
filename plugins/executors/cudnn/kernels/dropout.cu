// SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

template <class T>
void dropout_of(cudaStream_t s, dropout_args d, image_layout p, const T* x, T* y, std::size_t samples, bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const element_position at = position_of(p, i);
    const bool kept = keeps(*d.seed, *d.first + at.sample, at.channel * p.spatial + at.position, d.threshold);
    put(y + i, kept ? to_float(x[i]) * d.scale : 0, add);
  });
}

} // namespace

void dropout(cudaStream_t s, dtype t, const dropout_args& d, const image_layout& p, const void* x, void* y,
             std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { dropout_of(s, d, p, as(of, x), as(of, y), samples, add); });
}

} // namespace cudnn::kernels
