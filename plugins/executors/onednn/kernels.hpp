// SPDX-License-Identifier: Apache-2.0
//
// Kernels for layers that oneDNN has no fast code for: batch norm, ReLU, dropout and 2x2 max pooling, in as few passes
// over memory as possible. kernels.inl is compiled once per instruction set; kernels_for() chooses at run time.
//
// Activations are blocked: [sample][channel block][height][width][lane]. A mask has one bit per element, and one word
// per vector of lanes: [sample][channel block][height][width].
#pragma once

#include "sequence_kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onednn {

using mask_word = std::uint16_t;
inline constexpr std::size_t max_lanes = 16;

// Stages of a pass. norm: x * a + b per channel; then residual: + r; relu; pool: 2x2 windows with stride 2, never with
// a residual; dropout: keeps the elements that `mask` marks; record: sets `mask` to the elements through which
// gradients flow.
enum : unsigned {
  with_norm = 1,
  with_relu = 2,
  with_dropout = 4,
  with_pool = 8,
  record_mask = 16,
  with_residual = 32,
  pass_kinds = 64
};

// Operands of a pass over one channel block of some samples. Strides are elements from sample to sample. Pointers that
// a pass does not use may be null. Elements are of type T in memory; arithmetic is fp32.
template <class T> struct pass_of {
  std::size_t samples = 0, height = 0, width = 0; // before pooling
  const T* x = nullptr;                           // [samples, height, width, lane]
  const T* r = nullptr;                           // as x
  T* y = nullptr;                                 // as x, or pooled
  const T* dy = nullptr;                          // as y
  T* dx = nullptr;                                // as x
  T* dr = nullptr;                                // as x; may be dy
  mask_word* mask = nullptr;                      // [samples, height, width]
  std::size_t x_stride = 0, y_stride = 0, mask_stride = 0;
  const float *a = nullptr, *b = nullptr, *c = nullptr; // per lane
  float scale = 1;                                      // factor of the elements that dropout keeps
};
using pass = pass_of<float>;

struct dropout_pass {
  mask_word* mask;
  std::size_t samples, spatial, mask_stride;
  std::size_t first_channel;  // number of the block's first channel
  std::uint64_t seed, sample; // seed of step and layer; number of the first sample in the global batch
  std::uint32_t threshold;    // an element is kept if its 16 random bits are at least this
};

template <class T> struct pass_table {
  // Adds x - a and its square over samples, height and width to sums[l] and squares[l].
  void (*moments)(const pass_of<T>&, double* sums, double* squares);
  // Computes y from x; indexed by the flags above.
  void (*forward[pass_kinds])(const pass_of<T>&);
  // Adds g and g * (x - a) to sums[l] and products[l]; g is dy where the mask is set, else 0. Indexed by pooling or
  // not.
  void (*reduce[2])(const pass_of<T>&, double* sums, double* products);
  // As reduce[0], and stores dr = g.
  void (*reduce_residual)(const pass_of<T>&, double* sums, double* products);
  // dx = a * g + b * x + c with norm, else scale * g; g as in `reduce`. Indexed by the flags with_norm and with_pool.
  void (*backward[pass_kinds])(const pass_of<T>&);
  void (*add)(T* y, const T* x, std::size_t count); // y += x
};

struct kernel_table : pass_table<float> {
  const char* name;
  std::size_t lanes; // channels in a block
  pass_table<bf16> half;
  // Draws the mask of the elements that dropout keeps, as regatta/layers.hpp defines it.
  void (*dropout)(const dropout_pass&);
  sequence_kernels sequence;
  void (*widen)(float* y, const bf16* x, std::size_t count);  // y = x, exact
  void (*narrow)(bf16* y, const float* x, std::size_t count); // y = x, rounded to nearest even

  template <class T> const pass_table<T>& passes() const {
    if constexpr (std::is_same_v<T, float>)
      return *this;
    else
      return half;
  }
};

// Returns the kernels for `level` 2: AVX-512 (F, BW, VL, DQ); 1: AVX2 with FMA; 0: any CPU.
const kernel_table& kernels_for(int level);

} // namespace onednn
