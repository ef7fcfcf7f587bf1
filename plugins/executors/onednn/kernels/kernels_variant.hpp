// SPDX-License-Identifier: Apache-2.0
//
// The kernel tables of every instruction set, and the lists of flags with which each variant fills its table. For
// kernels_*.cpp only; others call kernels_for() and row_kernels_for(). A table's functions run only on a CPU with its
// instruction set.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/row_kernels.hpp"

#include <utility>

namespace onednn {

// All combinations of the stage flags in kernels.hpp: 0 to pass_kinds - 1.
template <unsigned... Flags> using flags = std::integer_sequence<unsigned, Flags...>;
using all_flags = std::make_integer_sequence<unsigned, pass_kinds>;

#if defined(__x86_64__)
namespace avx512 {
extern const kernel_table table;
extern const row_kernels row_table;
} // namespace avx512
namespace avx2 {
extern const kernel_table table;
extern const row_kernels row_table;
} // namespace avx2
#endif
namespace portable {
extern const kernel_table table;
extern const row_kernels row_table;
} // namespace portable

} // namespace onednn
