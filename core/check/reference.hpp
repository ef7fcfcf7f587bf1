// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a fixed batch as NumPy files, to compare with those of another implementation such as PyTorch.
#pragma once

#include "check/suite.hpp"

namespace regatta::conformance {

// Returns the task of `regatta check --write-reference`, in the form of a test so that it can run in its own process. It
// writes the batch that --reference uses to subject::write_to: inputs/, weights/, gradients/ (one file NAME.npy for each
// tensor, in canonical layout; for sparse tables the rows that the batch touches, with their numbers in rows/) and
// loss.npy.
const test& write_reference_test();

} // namespace regatta::conformance
