// SPDX-License-Identifier: Apache-2.0
//
// Kernels for layers that oneDNN has no fast code for: batch norm, ReLU, dropout and 2x2 max pooling, in as few passes
// over memory as possible. kernels.inl is compiled once per instruction set; kernels_for() chooses at run time.
//
// Activations are blocked: [sample][channel block][height][width][lane]. A lane is a channel within its block. A mask
// has one word per vector of lanes, [sample][channel block][height][width], with bit l for lane l. Kernels run on the
// calling thread only.
#pragma once

#include "kernels/sequence_kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onednn {

using mask_word = std::uint16_t;
inline constexpr std::size_t max_lanes = 16;

// Stages of a forward pass, in this order. norm: x * a + b per channel; residual: + r; relu; then either pool: maximum
// of 2x2 windows with stride 2, never with a residual; or dropout: multiplies the elements that `mask` marks by
// `scale`, and sets the others to 0. record: afterwards sets `mask` to the elements of x through which gradients flow.
enum : unsigned {
  with_norm = 1,
  with_relu = 2,
  with_dropout = 4,
  with_pool = 8,
  record_mask = 16,
  with_residual = 32,
  pass_kinds = 64
};

// Operands of a pass over one channel block of some samples. Strides are elements (of a mask: words) from sample to
// sample; r, dx and dr use x_stride, dy uses y_stride. Pointers that a pass does not use may be null; without a mask
// all elements are kept. Elements are of type T in memory; arithmetic is fp32.
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

// Operands of kernel_table::dropout: the mask of one channel block of some samples.
struct dropout_pass {
  mask_word* mask;
  std::size_t samples, spatial, mask_stride; // spatial: height * width; mask_stride: words from sample to sample
  std::size_t first_channel;                 // number of the block's first channel
  std::uint64_t seed, sample;                // seed of step and layer; number of the first sample in the global batch
  std::uint32_t threshold;                   // an element is kept if its 16 random bits are at least this
};

template <class T> struct pass_table {
  // For each lane l, adds the sum of x - a[l] over samples, height and width to sums[l], and that of its square to
  // squares[l].
  void (*moments)(const pass_of<T>&, double* sums, double* squares);
  // Computes y from x, and from r with a residual; indexed by the stage flags. y may be x without pooling.
  void (*forward[pass_kinds])(const pass_of<T>&);
  // For each lane l, adds the sum of g to sums[l] and that of g * (x - a[l]) to products[l]; g is dy where the mask is
  // set, else 0. [0]: without pooling; [1]: with pooling, dy is that of the window to which x belongs.
  void (*reduce[2])(const pass_of<T>&, double* sums, double* products);
  // As reduce[0], and stores dr = g.
  void (*reduce_residual)(const pass_of<T>&, double* sums, double* products);
  // dx = a * g + b * x + c with norm, else scale * g; g as in `reduce`. Indexed by the stage flags, of which only
  // with_norm and with_pool matter. dx may be dy without pooling.
  void (*backward[pass_kinds])(const pass_of<T>&);
  // y += x. For bf16, `count` is rounded up to whole blocks of lanes, which must exist in memory.
  void (*add)(T* y, const T* x, std::size_t count);
};

// All kernels for one instruction set; the base has the passes over fp32.
struct kernel_table : pass_table<float> {
  const char* name;
  std::size_t lanes; // channels in a block
  pass_table<bf16> half;
  // Overwrites the mask with the elements that dropout keeps, as regatta/layers.hpp defines them.
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

// Returns the kernels for `level` 2: AVX-512 (F, BW, VL, DQ); 1: AVX2 with FMA; 0: any CPU. On other architectures than
// x86-64 always those for any CPU. Does not check the CPU: isa_level() returns the level that fits.
const kernel_table& kernels_for(int level);

} // namespace onednn
