// SPDX-License-Identifier: Apache-2.0
//
// An experiment's bytes: cases, or failure with a text.
#include "../core/config/config_catalogue.hpp"
#include "config/toml_document.hpp"
#include "input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const scratch_folder folder;
  const auto file = folder.write("f.toml", regatta::fuzz::input(data, size).text());
  try {
    const regatta::experiment e = regatta::load_experiment(file, {}, test_catalogue());
    for (const auto& c : e.cases) regatta::resolved_toml(c);
    (void)regatta::parse_toml(regatta::whole_toml(file, {}, test_catalogue(), e)); // throws toml_error if it is none
  } catch (const regatta::failure& f) {
    if (f.what()[0] == '\0') __builtin_trap();
  }
  return 0;
}
