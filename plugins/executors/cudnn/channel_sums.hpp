// SPDX-License-Identifier: Apache-2.0
//
// Two sums per channel at once: first per chunk, then over the chunks, so that many threads share the work and the
// order of additions is fixed. Included by .cu files only.
#pragma once

#include "elements.hpp"
#include "launch.hpp"

namespace cudnn {

inline index_t chunks_of(const picture& p, std::size_t samples) {
  // Enough chunks to fill a GPU, with enough work for a block in each.
  const std::size_t most = p.last ? samples * p.spatial / 16 : samples;
  const std::size_t wanted = p.last ? 1024 : 2048 / p.channels;
  const std::size_t n = most < wanted ? most : wanted;
  return static_cast<index_t>(n < 1 ? 1 : n);
}

// partials[0][chunk][channel] and partials[1][chunk][channel] = the sums of a and b, where f(element, channel, a, b)
// adds to both.
template <class F>
void channel_partials(cudaStream_t s, const picture& p, std::size_t samples, float* partials, const F& f) {
  const index_t chunks = chunks_of(p, samples), channels = p.channels, spatial = p.spatial;
  float* second = partials + std::size_t{chunks} * channels;
  if (p.last) {
    const auto places = static_cast<index_t>(samples * spatial);
    for_rows(s, chunks, channels, [=] REGATTA_DEVICE(const block& b, index_t k) {
      const auto from = static_cast<index_t>(std::uint64_t{places} * k / chunks);
      const auto to = static_cast<index_t>(std::uint64_t{places} * (k + 1) / chunks);
      for (index_t c = b.first(); c < channels; c += b.step()) {
        float one = 0, two = 0;
        for (index_t r = from; r < to; ++r) f(r * channels + c, c, one, two);
        partials[k * channels + c] = one;
        second[k * channels + c] = two;
      }
    });
  } else {
    const auto all = static_cast<index_t>(samples);
    for_rows(s, std::size_t{chunks} * channels, samples * spatial / chunks,
             [=] REGATTA_DEVICE(const block& b, index_t row) {
               const index_t k = row / channels, c = row % channels;
               const auto from = static_cast<index_t>(std::uint64_t{all} * k / chunks);
               const auto to = static_cast<index_t>(std::uint64_t{all} * (k + 1) / chunks);
               float one = 0, two = 0;
               for (index_t i = b.first(); i < (to - from) * spatial; i += b.step())
                 f(((from + i / spatial) * channels + c) * spatial + i % spatial, c, one, two);
               one = b.sum(one);
               two = b.sum(two);
               if (!b.leads()) return;
               partials[row] = one;
               second[row] = two;
             });
  }
}

// Returns sum number `which` (0 or 1) of channel c.
REGATTA_DEVICE inline double total_of(const float* partials, index_t chunks, index_t channels, int which, index_t c) {
  double sum = 0;
  const float* at = partials + std::size_t(which) * chunks * channels + c;
  for (index_t k = 0; k < chunks; ++k) sum += static_cast<double>(at[std::size_t{k} * channels]);
  return sum;
}

} // namespace cudnn
