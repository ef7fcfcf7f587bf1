// SPDX-License-Identifier: Apache-2.0
//
// All kernels, over a vector type that the including file defines: `vec`, `lanes`, load, store, load_some and
// store_some (they access the first n elements, n < lanes; the rest loads as 0), splat, fma, add, mul, sub, div, max,
// greater, keep (zero where the mask has no bit), round_to_even, times_power (a * 2^b for whole b); and over vectors of
// as many 32-bit `words`: load_words, splat_word, multiply (to 64 bits), exclusive_or, lower_at_least and
// upper_at_least (of 16-bit halves). Functions of other headers must not be called here: they would be compiled for
// this instruction set, and the linker might keep that copy for all callers.

// All combinations of the stage flags of batch norm: 0 to pass_kinds - 1.
template <unsigned... Flags> using flags = std::integer_sequence<unsigned, Flags...>;
using all_flags = std::make_integer_sequence<unsigned, pass_kinds>;

#include "kernels/vector.inl"

#include "kernels/attention.inl"
#include "kernels/dropout.inl"
#include "kernels/elementwise.inl"
#include "kernels/embedding.inl"
#include "kernels/loss.inl"
#include "kernels/normalization.inl"

constexpr kernel_table table_of(const char* name) {
  return {name,
          lanes,
          attention_table,
          dropout_table,
          elementwise_table,
          embedding_table,
          loss_table,
          normalization_table};
}
