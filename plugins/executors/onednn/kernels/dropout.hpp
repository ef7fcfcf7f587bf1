// SPDX-License-Identifier: Apache-2.0
//
// Dropout masks. Images are blocked as in normalization.hpp, and have one mask_word for each pixel of a channel block,
// [sample][channel block][height][width], with bit l for channel l of the block; 1: the element is kept. Of other
// values a mask has one bit per element of a sample: bit e % 8 of byte e / 8 for element e; 1: the element is kept.
// 8 readable bytes must follow such a mask, because kernels load whole words; mask_bytes() of ops/dropout.hpp includes
// them.
#pragma once

#include "kernels/normalization.hpp"

#include <cstddef>
#include <cstdint>

namespace onednn {

// Operands of dropout_kernels::draw_blocked: the mask of one channel block of some samples.
struct dropout_pass {
  mask_word* mask;
  std::size_t samples, spatial, mask_stride; // spatial: height * width; mask_stride: words from sample to sample
  std::size_t first_channel;                 // number of the block's first channel
  std::uint64_t seed, sample;                // seed of step and layer; number of the first sample in the global batch
  std::uint32_t threshold;                   // an element is kept if its 16 random bits are at least this
};

struct dropout_kernels {
  // Overwrites the mask with the elements that dropout keeps. Their random bits depend on the seed, the sample's number
  // and the element's index in canonical layout alone (the op dropout in regatta/layers.hpp), so that all executors
  // keep the same elements.
  void (*draw_blocked)(const dropout_pass&);
  // Draws `count` bytes of a sample's mask, for elements 8 first .. 8 (first + count) - 1, from the same random bits,
  // and writes them from mask[0] on. `seed` is that of step and layer, `sample` the number in the global batch. An
  // element is kept if its 16 random bits are at least `threshold`.
  void (*draw)(std::uint8_t* mask, std::size_t first, std::size_t count, std::uint64_t seed, std::uint64_t sample,
               std::uint32_t threshold);
  // y[i] = scale * x[i] where bit first_bit + i of the mask is set, else 0; y may be x.
  void (*apply)(const std::uint8_t* mask, std::size_t first_bit, const float* x, float* y, std::size_t size,
                float scale);
};

} // namespace onednn
