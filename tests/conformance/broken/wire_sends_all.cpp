// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a wire type is claimed, but elements cross in fp32. Caught by test `wire-types`.
#include "sends_all.hpp"

namespace {

struct wire_sends_all : sends_rounded {
  using sends_rounded::sends_rounded;
  rg_status begin(const rg_collective& of) {
    rg_collective c = of;
    c.wire = 0;
    return sends_rounded::begin(c);
  }
};

} // namespace

RG_PLUGIN("wire_sends_all", "1.0", rg::transport<wire_sends_all>("wire_sends_all", "broken: ignores the wire type"))
