// SPDX-License-Identifier: Apache-2.0
//
// Test `gradient` of models: compares gradients with finite differences of the loss.
#pragma once

#include "check/suite.hpp"

namespace regatta::conformance {

// Compares by central differences, tensor by tensor. Throws failed with the names of wrong tensors.
void finite_differences(const subject& s);

} // namespace regatta::conformance
