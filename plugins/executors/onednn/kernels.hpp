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
#include <type_traits>

namespace onednn {

using mask_word = std::uint16_t;
inline constexpr std::size_t max_lanes = 16;

// What a pass does, in this order. norm: x * a + b per channel; residual: + r; pool: 2x2 windows, stride 2, not with a
// residual; dropout: `mask` holds what it keeps; record: `mask` becomes where gradients flow.
enum : unsigned {
  with_norm = 1,
  with_relu = 2,
  with_dropout = 4,
  with_pool = 8,
  record_mask = 16,
  with_residual = 32,
  pass_kinds = 64
};

// One channel block of some samples. Strides are per sample, in elements. Pointers to what a pass has no use for may be
// null. Elements are of type T in memory, and floats in all sums and products.
template <class T> struct pass_of {
  std::size_t samples = 0, height = 0, width = 0; // of the larger side, before pooling
  const T* x = nullptr;                           // [samples, height, width, lane]
  const T* r = nullptr;                           // likewise
  T* y = nullptr;                                 // likewise, or pooled
  const T* dy = nullptr;                          // as y
  T* dx = nullptr;                                // as x
  T* dr = nullptr;                                // as x; may be dy
  mask_word* mask = nullptr;                      // [samples, height, width]
  std::size_t x_stride = 0, y_stride = 0, mask_stride = 0;
  const float *a = nullptr, *b = nullptr, *c = nullptr; // per lane
  float scale = 1;                                      // of what dropout keeps
};
using pass = pass_of<float>;

struct dropout_pass {
  mask_word* mask;
  std::size_t samples, spatial, mask_stride;
  std::size_t first_channel;  // of the block
  std::uint64_t seed, sample; // derived for step and layer; number of the first sample in the global batch
  std::uint32_t threshold;    // an element stays where its 16 bits are at least this
};

template <class T> struct pass_table {
  // sums[l], squares[l] += over samples, height and width of x - a and its square.
  void (*moments)(const pass_of<T>&, double* sums, double* squares);
  // y from x, by the flags above.
  void (*forward[pass_kinds])(const pass_of<T>&);
  // sums[l], products[l] += of g and g * (x - a), where g is dy where the mask lets it pass; by pooling or not.
  void (*reduce[2])(const pass_of<T>&, double* sums, double* products);
  // Likewise, and dr = g.
  void (*reduce_residual)(const pass_of<T>&, double* sums, double* products);
  // dx = a * g + b * x + c with norm, else scale * g; g as above. By with_norm and with_pool.
  void (*backward[pass_kinds])(const pass_of<T>&);
  void (*add)(T* y, const T* x, std::size_t count); // y += x
};

struct kernel_table : pass_table<float> {
  const char* name;
  std::size_t lanes; // channels in a block
  pass_table<bf16> half;
  // The mask of what dropout keeps, see layers.hpp.
  void (*dropout)(const dropout_pass&);
  sequence_kernels sequence;
  void (*widen)(float* y, const bf16* x, std::size_t count);  // y = x
  void (*narrow)(bf16* y, const float* x, std::size_t count); // y = x, rounded

  template <class T> const pass_table<T>& passes() const {
    if constexpr (std::is_same_v<T, float>)
      return *this;
    else
      return half;
  }
};

// `level` 2: AVX-512 (F, BW, VL, DQ); 1: AVX2 with FMA; 0: any.
const kernel_table& kernels_for(int level);

} // namespace onednn
