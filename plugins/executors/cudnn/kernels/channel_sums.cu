// SPDX-License-Identifier: Apache-2.0
#include "kernels/channel_sums.hpp"

#include "kernels/channel_partials.hpp"

namespace cudnn::kernels {
namespace {

template <class T> struct plain_sum {
  const T* x;
  REGATTA_DEVICE void operator()(index_t i, index_t, float& a, float&) const { a += to_float(x[i]); }
};

} // namespace

std::size_t partials_of(const image_layout& p, std::size_t samples) {
  return (2 * std::size_t{chunks_of(p, samples)} + 2) * p.channels;
}

void channel_sums(cudaStream_t s, dtype t, const void* x, const image_layout& p, std::size_t samples, float* out,
                  bool add, float* partials) {
  by_type(t, [&](auto* of) {
    channel_partials(s, p, samples, partials, plain_sum<std::remove_pointer_t<decltype(of)>>{as(of, x)});
  });
  const index_t channels = p.channels, chunks = chunks_of(p, samples);
  for_each(s, channels, [=] REGATTA_DEVICE(index_t c) {
    put(out + c, static_cast<float>(total_of(partials, chunks, channels, 0, c)), add);
  });
}

} // namespace cudnn::kernels
