// SPDX-License-Identifier: Apache-2.0
//
// The kernel tables of every instruction set. Only for the files that define them and for kernels_for(), which others
// call. A table's functions run only on a CPU with its instruction set.
#pragma once

#include "kernels/kernels.hpp"

#include <utility>

namespace onednn {

#if defined(__x86_64__)
namespace avx512 {
extern const kernel_table table;
} // namespace avx512
namespace avx2 {
extern const kernel_table table;
} // namespace avx2
#endif
namespace portable {
extern const kernel_table table;
} // namespace portable

} // namespace onednn
