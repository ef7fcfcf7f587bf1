// SPDX-License-Identifier: Apache-2.0
//
// Test `gradient` of models: gradients are the slope of the loss.
#pragma once

#include "check/suite.hpp"

namespace regatta::conformance {

// By central differences, tensor by tensor. Throws failed, naming the tensors that are wrong.
void finite_differences(const subject& s);

} // namespace regatta::conformance
