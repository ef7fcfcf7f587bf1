// SPDX-License-Identifier: Apache-2.0
#include "picks.hpp"

#include <regatta/plugin.hpp>

#include <algorithm>
#include <sstream>

namespace onednn {

picks::picks(std::uint32_t mode, const char* given) : timed_(mode == RG_KERNELS_TIMED) {
  std::istringstream lines(timed_ && given ? given : "");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos)
      throw rg::error(RG_E_CONFIG, "kernel picks: expected \"name: algorithm\", got \"" + line + "\"");
    const std::size_t start = colon + 2;
    given_[line.substr(0, colon)] = line.substr(start, line.find(' ', start) - start);
  }
}

std::size_t picks::choose(const std::string& name, const std::string& shape, const std::vector<std::string>& algorithms,
                          const std::function<double(std::size_t)>& seconds) {
  if (!timed_ || (algorithms.size() == 1 && given_.empty())) return 0;
  if (!given_.empty()) {
    const auto line = given_.find(name);
    if (line == given_.end()) throw rg::error(RG_E_CONFIG, "kernel picks: there is no line for \"" + name + "\"");
    const auto found = std::find(algorithms.begin(), algorithms.end(), line->second);
    if (found == algorithms.end())
      throw rg::error(RG_E_CONFIG, "kernel picks: \"" + name + "\" cannot run as \"" + line->second + "\" here");
    return static_cast<std::size_t>(found - algorithms.begin());
  }
  if (const auto known = known_.find(shape); known != known_.end()) return known->second;

  std::size_t best = 0;
  double best_time = 0;
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    seconds(i); // warms caches, makes pages
    double time = seconds(i);
    for (int again = 0; again < 2 && (i == 0 || time < 1.3 * best_time); ++again) time = std::min(time, seconds(i));
    if (i == 0 || time < best_time) {
      best = i;
      best_time = time;
    }
  }
  known_[shape] = best;
  return best;
}

} // namespace onednn
