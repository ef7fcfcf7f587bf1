// SPDX-License-Identifier: Apache-2.0
#include "kernel_choices.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>

namespace executors {
namespace {

std::optional<std::size_t> index_of(const std::vector<std::string>& algorithms, const std::string& algorithm) {
  const auto found = std::find(algorithms.begin(), algorithms.end(), algorithm);
  if (found == algorithms.end()) return std::nullopt;
  return static_cast<std::size_t>(found - algorithms.begin());
}

// Returns the time of each candidate. They take turns, so that a disturbance does not slow only one of them. Candidates
// that are far behind drop out.
std::vector<double> times_of(std::size_t candidates, const std::function<double(std::size_t)>& seconds) {
  std::vector<double> times(candidates);
  for (std::size_t i = 0; i < candidates; ++i) {
    seconds(i); // warms caches and touches pages
    times[i] = seconds(i);
  }
  for (int round = 0; round < 3; ++round) {
    const double limit = 1.5 * *std::min_element(times.begin(), times.end());
    for (std::size_t i = 0; i < candidates; ++i)
      if (times[i] < limit) times[i] = std::min(times[i], seconds(i));
  }
  return times;
}

} // namespace

kernel_choices::kernel_choices(const std::string& executor, std::uint32_t mode, const char* given, std::string machine,
                               const rg::logger& log)
    : timed_(mode == RG_KERNELS_TIMED), follows_(timed_ && given), log_(log),
      cache_(executor, timed_ && !follows_ ? plugins::choice_cache::usual_file(executor) : ""),
      machine_(std::move(machine)) {
  std::istringstream lines(timed_ && given ? given : "");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.rfind(": ");
    if (colon == std::string::npos)
      throw rg::error(RG_E_CONFIG, "kernel choices: expected \"name: algorithm\", got \"" + line + "\"");
    const std::size_t start = colon + 2;
    given_[line.substr(0, colon)] = line.substr(start, line.find(' ', start) - start);
  }
}

kernel_choices::~kernel_choices() {
  try {
    if (!cache_.save()) log_.debug("kernel timings could not be saved in " + cache_.file().string());
  } catch (const std::exception& e) {
    log_.debug(std::string("kernel timings could not be saved: ") + e.what());
  }
}

const std::string* kernel_choices::known(const std::string& name, const std::string& shape) const {
  if (const auto line = given_.find(name); line != given_.end()) return &line->second;
  return timed_ ? cache_.find(machine_ + shape) : nullptr;
}

std::size_t kernel_choices::choose(const std::string& name, const std::string& shape,
                                   const std::vector<std::string>& algorithms,
                                   const std::function<double(std::size_t)>& seconds) {
  if (!timed_ || (algorithms.size() == 1 && !follows_)) return 0;
  if (follows_ && !given(name)) throw rg::error(RG_E_CONFIG, "kernel choices: there is no line for \"" + name + "\"");
  std::string key = shape + ';'; // and the candidates that were timed
  for (const std::string& a : algorithms) key += ' ' + a;
  if (const std::string* algorithm = known(name, key)) {
    if (const auto index = index_of(algorithms, *algorithm)) {
      if (!given(name)) log_.debug(name + ": " + *algorithm + ", as timed before");
      return *index;
    }
    if (given(name))
      throw rg::error(RG_E_CONFIG, "kernel choices: \"" + name + "\" cannot run as \"" + *algorithm + "\" here");
  }

  const std::vector<double> times = times_of(algorithms.size(), seconds);
  const auto best = static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  std::string why;
  for (std::size_t i = 0; i < times.size(); ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f ms", times[i] * 1e3);
    why += (i ? ", " : "") + algorithms[i] + ' ' + text;
  }
  log_.debug(name + ": " + algorithms[best] + ", as timed (" + why + ')');
  cache_.add(machine_ + key, algorithms[best], why);
  return best;
}

} // namespace executors
