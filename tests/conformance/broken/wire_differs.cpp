// SPDX-License-Identifier: Apache-2.0
//
// Mistake: in a collective with a wire type each member adds its own elements in fp32, while the others see them
// rounded. Caught by test `all-reduce`.
#include "sends_all.hpp"

namespace {

struct wire_differs : sends_rounded {
  using sends_rounded::sends_rounded;
  float summand(const rounded_call& r, std::size_t m, std::size_t i) const override {
    const float mine = static_cast<const float*>(r.of.source_address)[i];
    return r.all[m * r.of.source.count + i] == rg::to_bf16(mine) ? mine : sends_rounded::summand(r, m, i);
  }
};

} // namespace

RG_PLUGIN("wire_differs", "1.0", rg::transport<wire_differs>("wire_differs", "broken: members have different sums"))
