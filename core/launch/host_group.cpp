// SPDX-License-Identifier: Apache-2.0
#include "launch/host_group.hpp"

#include <fmt/format.h>

namespace regatta {

failure launcher_missing(const std::string& transport, const std::string& command, std::uint32_t ranks,
                         const std::string& verb) {
  return {exit_code::usage, fmt::format("transport {} needs processes that a launcher starts: run {} {} regatta {}",
                                        transport, command, ranks, verb)};
}

} // namespace regatta
