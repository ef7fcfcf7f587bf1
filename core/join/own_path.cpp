// SPDX-License-Identifier: Apache-2.0
#include "join/own_path.hpp"

#include "registry/registry.hpp"

namespace regatta {

std::string own_path(const std::string& path, const std::string& built_in) {
  if (built_in.empty() || !path.starts_with(built_in + "/")) return path;
  return (built_in_folder() / path.substr(built_in.size() + 1)).string();
}

} // namespace regatta
