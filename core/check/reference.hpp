// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a fixed batch, to compare with those of another implementation (PyTorch), as files of NumPy's format.
#pragma once

#include "check/suite.hpp"

#include <filesystem>

namespace regatta::conformance {

// Writes inputs/, weights/, gradients/ (a file a tensor, NAME.npy, canonical layout; of sparse tables the rows that the
// batch touches, their numbers in rows/) and loss.npy of the batch that --reference uses. Throws failed or failure.
void write_reference(const subject& s, const std::filesystem::path& folder);

} // namespace regatta::conformance
