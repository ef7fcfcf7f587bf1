// SPDX-License-Identifier: Apache-2.0
//
// The example model without its RG_PLUGIN, as base of the broken ones.
#pragma once

#include <regatta/model.hpp>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_model/linear_regression.cpp"
#pragma pop_macro("RG_PLUGIN")
