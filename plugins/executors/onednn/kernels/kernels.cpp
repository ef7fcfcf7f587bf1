// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_sets.hpp"

namespace onednn {

const kernel_table& kernels_for([[maybe_unused]] int level) {
#if defined(__x86_64__)
  if (level >= 2) return avx512::table;
  if (level == 1) return avx2::table;
#endif
  return portable::table;
}

} // namespace onednn
