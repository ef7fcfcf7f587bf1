// SPDX-License-Identifier: Apache-2.0
//
// Test `gradient` of models: the integral of the gradient along a path must equal the change of the loss.
#pragma once

#include "check/harness/suite.hpp"

namespace regatta::conformance {

// Checks the gradient of every trained tensor; of more than 64, the first 16, the last 16, and 32 that the seed
// chooses. Throws failed with the number of wrong gradients and the first three of them. Remarks name tensors whose
// gradient could not be measured or is 0 everywhere. Throws skipped if the model cannot run on this machine. [main]
void check_gradients(const subject& s);

} // namespace regatta::conformance
