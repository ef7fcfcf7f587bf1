// SPDX-License-Identifier: Apache-2.0
//
// The verb `kubernetes`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Values of the options; empty texts and 0 are those that were not given.
struct kubernetes_options {
  std::filesystem::path file;
  std::string image, name, namespace_, cpu, memory, results_claim;
  std::uint32_t processes = 0;
  int gpus = -1; // -1: one a pod if a case trains on GPUs
  bool one_per_node = false;
  std::string format = "yaml"; // yaml | json
  std::vector<std::string> plugin_path;
};

// Prints the Kubernetes objects that run the experiment: docs/cluster.md. Checks its cases as for ranks that are all on
// hosts of their own, and says on standard error which ones cannot run so and which files the pods must have. Throws
// failure: usage if an option or the experiment is wrong, or if there are fewer `processes` than ranks in the largest
// case that can run; if no case can run, the code of their reasons. Returns 0. [main]
int kubernetes_verb(const kubernetes_options& o);

} // namespace regatta
