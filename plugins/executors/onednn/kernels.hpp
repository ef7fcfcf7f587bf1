// SPDX-License-Identifier: Apache-2.0
//
// What oneDNN has no fast form of: batch norm, ReLU, dropout and 2x2 max pooling in as few passes over memory as they
// need. Compiled once per instruction set (kernels.inl); kernels_for() picks at run time.
//
// Activations are blocked: [sample][channel block][height][width][lane]. A mask has a bit for each element, in words of
// one vector: [sample][channel block][height][width].
#pragma once

#include "sequence_kernels.hpp"

#include <cstddef>
#include <cstdint>

namespace onednn {

using mask_word = std::uint16_t;

// What a pass does, in this order. norm: x * a + b per channel; pool: 2x2 windows, stride 2; masked: `mask` holds what
// dropout keeps; record: `mask` becomes where gradients flow.
enum : unsigned { with_norm = 1, with_relu = 2, with_dropout = 4, with_pool = 8, record_mask = 16, pass_kinds = 32 };

// One channel block of some samples. Strides are per sample, in elements. Pointers to what a pass has no use for may be
// null.
struct pass {
  std::size_t samples = 0, height = 0, width = 0; // of the larger side, before pooling
  const float* x = nullptr;                       // [samples, height, width, lane]
  float* y = nullptr;                             // likewise, or pooled
  const float* dy = nullptr;                      // as y
  float* dx = nullptr;                            // as x
  mask_word* mask = nullptr;                      // [samples, height, width]
  std::size_t x_stride = 0, y_stride = 0, mask_stride = 0;
  const float *a = nullptr, *b = nullptr, *c = nullptr; // per lane
  float scale = 1;                                      // of what dropout keeps
};

struct dropout_pass {
  mask_word* mask;
  std::size_t samples, spatial, mask_stride;
  std::size_t first_channel;  // of the block
  std::uint64_t seed, sample; // derived for step and layer; number of the first sample in the global batch
  std::uint32_t threshold;    // an element stays where its 16 bits are at least this
};

struct kernel_table {
  const char* name;
  std::size_t lanes; // channels in a block
  // sums[l], squares[l] += over samples, height and width of x - a and its square.
  void (*moments)(const pass&, double* sums, double* squares);
  // y from x, by the flags above.
  void (*forward[pass_kinds])(const pass&);
  // sums[l], products[l] += of g and g * (x - a), where g is dy where the mask lets it pass; by pooling or not.
  void (*reduce[2])(const pass&, double* sums, double* products);
  // dx = a * g + b * x + c with norm, else scale * g; g as above. By with_norm and with_pool.
  void (*backward[pass_kinds])(const pass&);
  // The mask of what dropout keeps, see layers.hpp.
  void (*dropout)(const dropout_pass&);
  void (*add)(float* y, const float* x, std::size_t count); // y += x
  sequence_kernels sequence;
};

// `level` 2: AVX-512 (F, BW, VL, DQ); 1: AVX2 with FMA; 0: any.
const kernel_table& kernels_for(int level);

} // namespace onednn
