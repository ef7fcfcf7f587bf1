// SPDX-License-Identifier: Apache-2.0
//
// Test `gradient` of models: the integral of the gradient along a path must equal the change of the loss.
#pragma once

#include "check/suite.hpp"

namespace regatta::conformance {

// Checks each tensor. Throws failed with the names of wrong tensors; remarks name those that could not be measured.
void check_gradients(const subject& s);

} // namespace regatta::conformance
