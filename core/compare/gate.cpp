// SPDX-License-Identifier: Apache-2.0
#include "compare/gate.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace regatta {
namespace {

const figure_kind* known_kind(const std::string& path) {
  const auto& all = compared_figures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const figure_kind& k) { return path == k.path; });
  return found == all.end() ? nullptr : &*found;
}

} // namespace

gate parse_gate(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    return failure(exit_code::usage, fmt::format("--gate {}: {}", one_line(text), why));
  };
  const std::size_t space = text.find(' ');
  gate g{text.substr(0, space), 0};
  const figure_kind* kind = known_kind(g.path);
  const std::vector<std::string> names = compared_paths();
  if (!kind) throw refuse(fmt::format("expected one of {}{}", join(names), did_you_mean(g.path, names)));
  const char* const example = kind->more_is_better ? "-3%" : "+3%";
  std::string change = space == std::string::npos ? "" : text.substr(space + 1);
  if (change.starts_with('+')) change.erase(0, 1);
  const auto [end, error] = std::from_chars(change.data(), change.data() + change.size(), g.change);
  if (error != std::errc() || std::string_view(end, change.data() + change.size()) != "%")
    throw refuse(fmt::format("expected a change such as \"{} {}\"", g.path, example));
  g.change /= 100;
  if (kind->more_is_better ? !(g.change < 0 && g.change > -1) : !(g.change > 0))
    throw refuse(fmt::format("expected a change for the worse, such as \"{} {}\"", g.path, example));
  return g;
}

std::vector<gate_result> check_gate(const gate& g, const comparison& c) {
  std::vector<gate_result> results;
  const double bound = 1 + g.change;
  const std::string name = fmt::format("gate {} {:+g} %", g.path, 100 * g.change);
  for (const compared_case& one : c.cases)
    for (const compared_figure& f : one.figures) {
      if (f.path != g.path) continue;
      const interval& r = f.ratio;
      const bool beyond = g.change < 0 ? r.high < bound : r.low > bound;
      const bool within = g.change < 0 ? r.low >= bound : r.high <= bound;
      const bool sure = !f.p || r.coverage >= usual_confidence;
      const std::string change = fmt::format("{:+.1f} to {:+.1f} %", 100 * (r.low - 1), 100 * (r.high - 1));
      if (beyond && sure)
        results.push_back({fmt::format("{} FAILED: {} [{}]", name, change, one.b), true});
      else if (within && sure)
        results.push_back({fmt::format("{} passed: {} [{}]", name, change, one.b), false});
      else
        results.push_back(
            {fmt::format(
                 "{} undecided: {} with {} repeats{} [{}]", name, change, f.repeats,
                 sure ? "" : fmt::format(", at least {} are needed", f.paired ? fewest_pairs(1) : fewest_unpaired(1)),
                 one.b),
             false});
    }
  if (results.empty()) results.push_back({name + " FAILED: no compared case has this figure", true});
  return results;
}

} // namespace regatta
