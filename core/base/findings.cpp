// SPDX-License-Identifier: Apache-2.0
#include "base/findings.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace regatta {
namespace {

constexpr std::size_t most_lines = 20;

// The place of a code in the order in which codes count; those that are not in it come last.
std::ptrdiff_t rank_of(exit_code code) {
  constexpr std::array order = {exit_code::interrupted, exit_code::usage, exit_code::plugin, exit_code::wrong,
                                exit_code::run,         exit_code::gate,  exit_code::skipped};
  return std::ranges::find(order, code) - order.begin();
}

} // namespace

void findings::add(const failure& f) {
  if (rank_of(f.code()) < rank_of(code_)) code_ = f.code();
  for (const std::string& line : lines_of(f.what())) {
    if (std::ranges::find(lines_, line) != lines_.end()) continue;
    if (lines_.size() < most_lines)
      lines_.push_back(line);
    else
      ++left_out_;
  }
}

void findings::raise() const {
  if (lines_.empty()) return;
  const std::string more = left_out_ ? fmt::format("\n... and {} more", left_out_) : "";
  throw failure(code_, join(lines_, "\n") + more);
}

} // namespace regatta
