// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "comm/links.hpp"
#include "comm/plan.hpp"

namespace regatta::comm {

// A suspicion: the hosts that it names, by number.
struct finding {
  std::vector<std::uint32_t> hosts;
  std::string check, evidence;
};

// Returns the hosts and links that stand out among `links`, all of which were measured alone, and among the paths that
// drop large packets. `names` and `results` are those of preflight_of(); a rank is a host. Of three or more hosts, one
// is named if more than half of its measured outgoing links, and at least two, are far off (marks_of()), or of its
// incoming ones. Of each other link that is far off, both ends are named.
std::vector<finding> findings_of_links(const plan& p, const std::vector<std::string>& names,
                                       const std::vector<nlohmann::json>& results, const std::vector<rank_link>& links);

} // namespace regatta::comm
