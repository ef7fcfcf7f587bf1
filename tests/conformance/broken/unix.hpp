// SPDX-License-Identifier: Apache-2.0
//
// The example transport without its RG_PLUGIN, as base of the broken ones.
#pragma once

#include <regatta/transport.hpp>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_transport/unix_sockets.cpp"
#pragma pop_macro("RG_PLUGIN")
