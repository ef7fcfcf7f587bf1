// SPDX-License-Identifier: Apache-2.0
#include "kernels/squeeze_excite.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

template <class T>
void scale_of(cudaStream_t s, image_layout p, const T* x, const T* factors, T* y, std::size_t samples, bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const element_position at = position_of(p, i);
    put(y + i, to_float(x[i]) * to_float(factors[at.sample * p.channels + at.channel]), add);
  });
}
template <class T>
void factors_of(cudaStream_t s, image_layout p, const T* x, const T* dy, T* dfactors, std::size_t samples, bool add) {
  for_rows(s, samples * p.channels, p.spatial, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const index_t step = p.channels_last ? p.channels : 1, from = start_of(p, {row / p.channels, row % p.channels, 0});
    float sum = 0;
    for (index_t i = b.first(); i < p.spatial; i += b.step())
      sum += to_float(x[from + i * step]) * to_float(dy[from + i * step]);
    sum = b.sum(sum);
    if (b.leads()) put(dfactors + row, sum, add);
  });
}

} // namespace

void scale_channels(cudaStream_t s, dtype t, const image_layout& p, const void* x, const void* factors, void* y,
                    std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { scale_of(s, p, as(of, x), as(of, factors), as(of, y), samples, add); });
}

void scale_channels_factors(cudaStream_t s, dtype t, const image_layout& p, const void* x, const void* dy,
                            void* dfactors, std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { factors_of(s, p, as(of, x), as(of, dy), as(of, dfactors), samples, add); });
}

} // namespace cudnn::kernels
