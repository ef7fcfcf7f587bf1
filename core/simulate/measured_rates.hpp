// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace regatta {

struct measured_rates {
  std::vector<std::pair<double, double>> rates; // as in machine_file
  std::string fingerprint;                      // fingerprint.model of these cases
};

// [any] Returns the samples/s of one worker by batch, from the measured cases of one worker of a stored result: the
// median of its repeats; of several cases with one batch their mean. `given` is the file of a result, or its folder.
// Throws failure (usage) if it is no result, has no such case, or has cases of different models.
measured_rates read_measured_rates(const std::string& given);

} // namespace regatta
