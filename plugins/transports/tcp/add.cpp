// SPDX-License-Identifier: Apache-2.0
#include "add.hpp"

#include <regatta/simd.hpp>

namespace tcp {

static void add_loop(std::byte* target, const std::byte* source, std::size_t count) noexcept {
  rg::simd::add(target, target, source, count);
}

void add_floats(std::byte* target, const std::byte* source, std::size_t count) noexcept {
  rg::simd::widest<add_loop>(target, source, count);
}

} // namespace tcp
