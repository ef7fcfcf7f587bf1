// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels_variant.hpp"

namespace onednn {

const kernel_table& kernels_for([[maybe_unused]] int level) {
#if defined(__x86_64__)
  if (level >= 2) return avx512::table;
  if (level == 1) return avx2::table;
#endif
  return portable::table;
}

const row_kernels& row_kernels_for([[maybe_unused]] int level) {
#if defined(__x86_64__)
  if (level >= 2) return avx512::row_table;
  if (level == 1) return avx2::row_table;
#endif
  return portable::row_table;
}

} // namespace onednn
