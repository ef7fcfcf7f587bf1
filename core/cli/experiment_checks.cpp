// SPDX-License-Identifier: Apache-2.0
#include "cli/experiment_checks.hpp"

#include "base/findings.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace regatta {

void reject_impossible_experiment(const experiment& e, const std::function<void(const case_config&)>& attempt) {
  findings reasons;
  for (const case_config& c : e.cases) {
    try {
      attempt(c);
      return;
    } catch (const failure& f) {
      // A missing device, or a plugin that crashes, fails only its own case.
      if (e.cases.size() > 1 && f.code() != exit_code::usage) return;
      reasons.add({f.code(), c.written.reason_of(f)});
    }
  }
  reasons.raise();
}

std::vector<std::string> notices_of_servers(const experiment& e,
                                            const std::function<std::uint64_t(const case_config&)>& servers) {
  const auto given = [&](const char* key, auto&& is_set) {
    return std::ranges::any_of(e.cases, [&](const case_config& c) { return is_set(c) && c.written.has(key); });
  };
  std::vector<const char*> keys;
  const cluster_config defaults; // a resolved file holds the defaults
  if (given("cluster.servers", [&](const case_config& c) { return c.cluster.servers != defaults.servers; }))
    keys.push_back("cluster.servers");
  if (given("cluster.colocate", [&](const case_config& c) { return c.cluster.colocate; }))
    keys.push_back("cluster.colocate");
  if (keys.empty()) return {};
  std::set<std::string> strategies;
  for (const case_config& c : e.cases) {
    if (!strategies.insert(c.strategy.id).second) continue;
    try {
      if (servers(c) > 0) return {};
    } catch (const failure&) {
      return {};
    }
  }
  std::vector<std::string> notices;
  for (const char* key : keys)
    notices.push_back(
        e.cases.front().written.notice(key, fmt::format("has no effect with strategy.plugin = \"{}\"",
                                                        join({strategies.begin(), strategies.end()}, "\", \""))));
  return notices;
}

} // namespace regatta
