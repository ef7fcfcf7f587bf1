// SPDX-License-Identifier: Apache-2.0
#include "tuning/kernel_choices.hpp"

#include "runtime/instruction_set.hpp"

#include <regatta/plugin.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace onednn {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown CPU";
}

std::string machine_of(const device& dev) {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch) + ' ' +
         v->hash + "; " + isa_name() + "; " + cpu_name() + "; threads " + std::to_string(dev.threads) + "; ";
}

} // namespace

picks::picks(std::uint32_t mode, const char* given, const device& dev)
    : timed_(mode == RG_KERNELS_TIMED), log_(dev.log),
      cache_("onednn", timed_ && !given ? plugins::pick_cache::usual_file("onednn") : ""), machine_(machine_of(dev)) {
  std::istringstream lines(timed_ && given ? given : "");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos)
      throw rg::error(RG_E_CONFIG, "kernel picks: expected \"name: algorithm\", got \"" + line + "\"");
    const std::size_t start = colon + 2;
    given_[line.substr(0, colon)] = line.substr(start, line.find(' ', start) - start);
  }
}

picks::~picks() {
  try {
    if (!cache_.save()) log_.debug("what was timed could not be kept in " + cache_.file().string());
  } catch (const std::exception& e) {
    log_.debug(std::string("what was timed could not be kept: ") + e.what());
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
  std::string key = machine_ + shape + ';'; // and the candidates that were timed
  for (const std::string& a : algorithms) key += ' ' + a;
  if (const std::string* known = cache_.find(key)) {
    const auto found = std::find(algorithms.begin(), algorithms.end(), *known);
    if (found != algorithms.end()) {
      log_.debug(name + ": " + *known + ", as timed before");
      return static_cast<std::size_t>(found - algorithms.begin());
    }
  }

  // Candidates take turns, so that a disturbance does not slow only one of them. Candidates that are far behind drop
  // out.
  std::vector<double> times(algorithms.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    seconds(i); // warms caches and touches pages
    times[i] = seconds(i);
  }
  auto fastest = [&] { return std::min_element(times.begin(), times.end()) - times.begin(); };
  for (int round = 0; round < 3; ++round) {
    const double limit = 1.5 * times[static_cast<std::size_t>(fastest())];
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] < limit) times[i] = std::min(times[i], seconds(i));
  }
  const auto best = static_cast<std::size_t>(fastest());
  std::string why;
  for (std::size_t i = 0; i < times.size(); ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f ms", times[i] * 1e3);
    why += (i ? ", " : "") + algorithms[i] + ' ' + text;
  }
  log_.debug(name + ": " + algorithms[best] + ", as timed (" + why + ')');
  cache_.add(key, algorithms[best], why);
  return best;
}

float* picks::workspace(std::size_t bytes) {
  if (bytes > workspace_bytes_) {
    workspace_.reset(); // free the old one first
    workspace_ = allocate_zeroed(bytes);
    workspace_bytes_ = bytes;
    // Numbers around 0 in steps of 2^-8: some machines multiply zeros or denormals at another speed.
    auto* numbers = reinterpret_cast<float*>(workspace_.get());
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
      state = state * 1664525 + 1013904223;
      numbers[i] = static_cast<float>(static_cast<int>(state >> 24) - 128) / 256.0F;
    }
  }
  return reinterpret_cast<float*>(workspace_.get());
}

} // namespace onednn
