// SPDX-License-Identifier: Apache-2.0
//
// Two sums per channel at once, over the samples and positions of a batch in layout p: channel_partials() sums per
// chunk of the batch, and total_of() over the chunks. So many threads share the work, and the order of additions is
// fixed. Included by .cu files only.
#pragma once

#include "kernels/element_functions.hpp"
#include "kernels/launch.hpp"

namespace cudnn {

// Returns the number of chunks, at least 1; depends on the arguments alone.
inline index_t chunks_of(const image_layout& p, std::size_t samples) {
  // Enough chunks to fill a GPU, with enough work for a block in each.
  const std::size_t most = p.channels_last ? samples * p.spatial / 16 : samples;
  const std::size_t wanted = p.channels_last ? 1024 : 2048 / p.channels;
  const std::size_t n = most < wanted ? most : wanted;
  return static_cast<index_t>(n < 1 ? 1 : n);
}

// The number of elements that a thread sums in fp32 before it adds the sum to a double. With fp32 alone the variance of
// an image of 224 x 224 is 1e-5 off (layers_test).
constexpr index_t floats_in_a_row = 64;

// Calls f(i, a, b) for i = from, from + step, ... below `to`. f adds the summands of element i to a and b, which start
// at zero; their sums are added to `one` and `two`.
template <class F>
REGATTA_DEVICE void add_up(index_t from, index_t to, index_t step, double& one, double& two, const F& f) {
  for (index_t i = from; i < to;) {
    float a = 0, b = 0;
    for (index_t k = 0; k < floats_in_a_row && i < to; ++k, i += step) f(i, a, b);
    one += static_cast<double>(a);
    two += static_cast<double>(b);
  }
}

// Enqueues a kernel that sets partials[0][chunk][channel] and partials[1][chunk][channel] to the chunk's sums of a and
// b. f(element, channel, a, b) adds the summands of an element, by its index in the batch, to a and b. `partials` has
// 2 * chunks_of(p, samples) * channels floats.
template <class F>
void channel_partials(cudaStream_t s, const image_layout& p, std::size_t samples, float* partials, const F& f) {
  const index_t chunks = chunks_of(p, samples), channels = p.channels, spatial = p.spatial;
  float* second = partials + std::size_t{chunks} * channels;
  if (p.channels_last) {
    const auto positions = static_cast<index_t>(samples * spatial);
    for_rows(s, chunks, channels, [=] REGATTA_DEVICE(const block& b, index_t k) {
      const auto from = static_cast<index_t>(std::uint64_t{positions} * k / chunks);
      const auto to = static_cast<index_t>(std::uint64_t{positions} * (k + 1) / chunks);
      for (index_t c = b.first(); c < channels; c += b.step()) {
        double one = 0, two = 0;
        add_up(from, to, 1, one, two,
               [&](index_t r, float& first, float& other) { f(r * channels + c, c, first, other); });
        partials[k * channels + c] = static_cast<float>(one);
        second[k * channels + c] = static_cast<float>(two);
      }
    });
  } else {
    const auto all = static_cast<index_t>(samples);
    for_rows(s, std::size_t{chunks} * channels, samples * spatial / chunks,
             [=] REGATTA_DEVICE(const block& b, index_t row) {
               const index_t k = row / channels, c = row % channels;
               const auto from = static_cast<index_t>(std::uint64_t{all} * k / chunks);
               const auto to = static_cast<index_t>(std::uint64_t{all} * (k + 1) / chunks);
               double one = 0, two = 0;
               add_up(b.first(), (to - from) * spatial, b.step(), one, two, [&](index_t i, float& x, float& y) {
                 f(((from + i / spatial) * channels + c) * spatial + i % spatial, c, x, y);
               });
               one = b.sum(one);
               two = b.sum(two);
               if (!b.leads()) return;
               partials[row] = static_cast<float>(one);
               second[row] = static_cast<float>(two);
             });
  }
}

// Returns sum number `which` (0: a, 1: b) of channel c. `chunks` is chunks_of(p, samples).
REGATTA_DEVICE inline double total_of(const float* partials, index_t chunks, index_t channels, int which, index_t c) {
  double sum = 0;
  const float* at = partials + std::size_t(which) * chunks * channels + c;
  for (index_t k = 0; k < chunks; ++k) sum += static_cast<double>(at[std::size_t{k} * channels]);
  return sum;
}

} // namespace cudnn
