// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a fixed batch as NumPy files, to compare with those of another implementation such as PyTorch.
#pragma once

#include "check/harness/suite.hpp"

namespace regatta::conformance {

// Returns the task of `regatta check --write-reference`, in the form of a test so that it can run in its own process.
// Its run() writes one step on the batch that --reference uses into the folder subject::write_to: inputs/, weights/ and
// gradients/ with one file NAME.npy (with '_' for '/') for each input or tensor, in canonical layout, and loss.npy, the
// mean loss. State has no gradient; its weights are the initial values. Of a sparse table it writes the rows that the
// batch touches, and their row numbers into rows/. run() throws failure (run) if a file cannot be written, skipped if
// the model cannot run on this machine, and failed if a call of the plugin fails.
test write_reference_test();

} // namespace regatta::conformance
