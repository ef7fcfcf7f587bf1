// SPDX-License-Identifier: Apache-2.0
//
// Loops of our own: ops that oneDNN has no fast code for. The files *.inl are compiled once per instruction set
// (kernels.inl includes them), and kernels_for() chooses at run time. Kernels run on the calling thread only.
// Arithmetic is fp32, also where elements are bf16 in memory; sums of batch norm and over logits are fp64, of partial
// sums in fp32.
//
// The multi-versioned functions of regatta/simd.hpp would not do here: the number of lanes, and with it the layout of
// images, depends on the instruction set, which must be the one that oneDNN uses.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/loss.hpp"
#include "kernels/normalization.hpp"

namespace onednn {

// All kernels for one instruction set.
struct kernel_table {
  const char* name;
  std::size_t lanes; // channels in a block
  attention_kernels attention;
  dropout_kernels dropout;
  elementwise_kernels elementwise;
  embedding_kernels embedding;
  loss_kernels loss;
  normalization_kernels normalization;
};

// Returns the kernels for `level` 2: AVX-512 (F, BW, VL, DQ); 1: AVX2 with FMA; 0: any CPU. On other architectures than
// x86-64 always those for any CPU. Does not check the CPU: isa_level() returns the level that fits.
const kernel_table& kernels_for(int level);

} // namespace onednn
