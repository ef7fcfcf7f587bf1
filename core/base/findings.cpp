// SPDX-License-Identifier: Apache-2.0
#include "base/findings.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace regatta {
namespace {

constexpr std::size_t most_lines = 20;

} // namespace

void findings::add(const failure& f) {
  code_ = worse_exit_code(code_, f.code());
  for (const std::string& line : lines_of(f.what()))
    if (all_.insert(line).second && lines_.size() < most_lines) lines_.push_back(line);
}

void findings::raise() const {
  if (lines_.empty()) return;
  const std::size_t left_out = all_.size() - lines_.size();
  const std::string more = left_out ? fmt::format("\n... and {} more", left_out) : "";
  throw failure(code_, join(lines_, "\n") + more);
}

} // namespace regatta
