// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/failure.hpp"
#include "base/instruction_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace regatta;
using rg::simd::isa, rg::simd::isa_names;

namespace {

std::string refusal(const std::string& choice) {
  try {
    cap_instruction_set(choice);
  } catch (const failure& e) {
    return e.code() == exit_code::usage ? e.what() : "";
  }
  return "";
}

} // namespace

TEST_CASE("train.isa takes auto and every name of the SDK") {
  std::vector<std::string> choices;
  for (const char* const* c = isa_choices; *c; ++c) choices.emplace_back(*c);
  std::vector<std::string> expected{"auto"};
  expected.insert(expected.end(), isa_names.begin(), isa_names.end());
  CHECK(choices == expected);
}

TEST_CASE("a choice lowers an instruction set, and never raises it") {
  CHECK(capped("avx512_core_amx", "auto") == "avx512_core_amx");
  CHECK(capped("avx512_core_amx", "avx512_core") == "avx512_core");
  CHECK(capped("avx512_core", "avx512_core_bf16") == "avx512_core");
  CHECK(capped("avx2", "avx2") == "avx2");
  CHECK(capped("avx2", "baseline") == "baseline");
  CHECK(capped("baseline", "avx2") == "baseline");
}

TEST_CASE("REGATTA_ISA takes the same names") {
  ::unsetenv("REGATTA_ISA");
  CHECK(rg::simd::allowed() == isa::avx512_core_amx);
  for (std::size_t i = 0; i < isa_names.size(); ++i) {
    ::setenv("REGATTA_ISA", isa_names[i].data(), 1);
    CHECK(rg::simd::allowed() == static_cast<isa>(i));
    CHECK(rg::simd::choose() == std::min(static_cast<isa>(i), rg::simd::supported()));
  }
  ::unsetenv("REGATTA_ISA");
}

TEST_CASE("a process keeps its first cap, which a lower REGATTA_ISA lowers further") {
  ::setenv("REGATTA_ISA", "baseline", 1);
  cap_instruction_set("avx2");
  CHECK(std::string(std::getenv("REGATTA_ISA")) == "baseline");
  CHECK(instruction_set() == "baseline");
  cap_instruction_set("avx2"); // another run of the same process
  const std::string text = refusal("auto");
  CHECK(text.find("train.isa: expected \"avx2\" as in the earlier runs of this process, got \"auto\"") == 0);
}
