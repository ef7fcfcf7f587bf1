// SPDX-License-Identifier: Apache-2.0
//
// The result of an artifact beside one that this machine measured from it.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct reproduction {
  std::string text;                                  // tables and sentences for the console
  std::size_t claims = 0, failed = 0, undecided = 0; // claims of theirs; how many of them fail, are undecided in ours
};

// [any] Compares two results (schema regatta.result/1): each claim of `theirs` with the verdicts of both, then the
// figures of each case that both have, `theirs` as A and `ours` as B, with the ratio B / A and its verdict. A claim
// that `ours` does not have counts as undecided. `width`: columns of the terminal; 0: unlimited. Throws
// nlohmann::json::exception if a document is no result.
reproduction compare_with(const nlohmann::json& theirs, const nlohmann::json& ours, std::size_t width);

} // namespace regatta
