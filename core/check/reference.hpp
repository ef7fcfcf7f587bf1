// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a fixed batch, to compare with those of another implementation (PyTorch), as files of NumPy's format.
#pragma once

#include "check/suite.hpp"

namespace regatta::conformance {

// A task in the form of a test, so that it can run in a process of its own. Writes to the subject's `write_to`: inputs/,
// weights/, gradients/ (a file a tensor, NAME.npy, canonical layout; of sparse tables the rows that the batch touches,
// their numbers in rows/) and loss.npy of the batch that --reference uses.
const test& write_reference_test();

} // namespace regatta::conformance
