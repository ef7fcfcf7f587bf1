// SPDX-License-Identifier: Apache-2.0
#include "base/findings.hpp"

#include "base/failure.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace regatta;

namespace {

failure raised(const findings& f) {
  try {
    f.raise();
  } catch (const failure& e) {
    return e;
  }
  return {exit_code::done, "nothing was raised"};
}

} // namespace

TEST_CASE("twenty findings are shown, each once, and the others counted, each once") {
  findings f;
  for (int pass = 0; pass < 2; ++pass)
    for (int line = 1; line <= 22; ++line) f.add(failure(exit_code::run, "line " + std::to_string(line) + "\nevery"));
  const std::string text = raised(f).what();
  CHECK(text.starts_with("line 1\nevery\nline 2\n"));
  CHECK(text.ends_with("\nline 19\n... and 3 more"));
}

TEST_CASE("of several exit codes the same one counts, whoever asks") {
  const exit_code order[] = {exit_code::interrupted, exit_code::usage,   exit_code::plugin, exit_code::wrong,
                             exit_code::run,         exit_code::skipped, exit_code::done};
  for (auto a = std::begin(order); a != std::end(order); ++a)
    for (auto b = a; b != std::end(order); ++b) {
      CHECK(worse_exit_code(*a, *b) == *a);
      CHECK(worse_exit_code(*b, *a) == *a);
      findings f;
      f.add(failure(*b, "b"));
      f.add(failure(*a, "a"));
      CHECK(raised(f).code() == *a);
    }
}
