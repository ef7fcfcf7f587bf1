// SPDX-License-Identifier: Apache-2.0
//
// Test `gradient` of models: the integral of gradients along a path is the change of the loss.
#pragma once

#include "check/suite.hpp"

namespace regatta::conformance {

// Tensor by tensor. Throws failed, naming the tensors that are wrong; remarks name those that are not measured.
void check_gradients(const subject& s);

} // namespace regatta::conformance
