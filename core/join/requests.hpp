// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <vector>

#include "base/descriptor.hpp"

namespace regatta {

// Answers the coordinator's requests "address", "files", "libraries", "listen" and "probe" (join/agent.hpp). [main]
class host_requests {
public:
  // Returns the answer; it has the member "error" if the request could not be met. Throws nlohmann::json::exception if
  // a member of the request is missing.
  nlohmann::json answer(const nlohmann::json& request);

private:
  std::vector<unique_fd> open_; // the ports of the last "listen"
};

} // namespace regatta
