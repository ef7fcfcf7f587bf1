// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a collective with wire type bf16 drops the lower 16 bits instead of rounding to nearest. Caught by test
// `all-reduce`.
#include "sends_all.hpp"

namespace {

struct wire_truncates : sends_rounded {
  using sends_rounded::sends_rounded;
  std::uint16_t round(float x) const override {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  }
};

} // namespace

RG_PLUGIN("wire_truncates", "1.0",
          rg::transport<wire_truncates>("wire_truncates", "broken: truncates to the wire type"))
