// SPDX-License-Identifier: Apache-2.0
//
// The transport `shm` without its RG_PLUGIN, as base of broken puts and gets.
#pragma once

#include <regatta/transport.hpp>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../plugins/transports/shm/shm.cpp"
#pragma pop_macro("RG_PLUGIN")
