// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a fixed batch as NumPy files, to compare with those of another implementation such as PyTorch.
#pragma once

#include "check/suite.hpp"

#include <filesystem>

namespace regatta::conformance {

// Writes the batch that --reference uses: inputs/, weights/, gradients/ (one file NAME.npy for each tensor, in
// canonical layout; for sparse tables the rows that the batch touches, with their numbers in rows/) and loss.npy.
// Throws failed or failure.
void write_reference(const subject& s, const std::filesystem::path& folder);

} // namespace regatta::conformance
