// SPDX-License-Identifier: Apache-2.0
#include "base/instruction_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/failure.hpp"

namespace regatta {

using rg::simd::isa_names;

const char* const isa_choices[] = {
    "auto", isa_names[0].data(), isa_names[1].data(), isa_names[2].data(), isa_names[3].data(), isa_names[4].data(),
    nullptr};

void cap_instruction_set(const std::string& choice) {
  static std::optional<std::string> before; // a launcher's process is the rank of several runs
  if (before && *before != choice)
    throw failure(
        exit_code::usage,
        fmt::format("train.isa: expected \"{}\" as in the earlier runs of this process, got \"{}\": the ranks "
                    "of a transport that the launcher connects stay for all cases; run the other value in an "
                    "experiment of its own",
                    *before, choice));
  before = choice;
  const std::string lower = capped(std::string(isa_names[static_cast<std::size_t>(rg::simd::allowed())]), choice);
  if (choice != "auto") ::setenv("REGATTA_ISA", lower.c_str(), 1);
  rg::simd::chosen = rg::simd::choose();
}

std::string capped(const std::string& isa, const std::string& choice) {
  const auto own = std::ranges::find(isa_names, isa), most = std::ranges::find(isa_names, choice); // "auto": the end
  return most < own ? choice : isa;
}

} // namespace regatta
