// SPDX-License-Identifier: Apache-2.0
//
// Defect: listen() always fails with the same text.
#pragma once

#include "../unix.hpp"

namespace {

struct has_no_device : unix_transport {
  using unix_transport::unix_transport;
  rg_blob listen(const rg_world&) { throw rg::error(RG_E_DEVICE, "device mlx9_0 is not there"); }
};

} // namespace
