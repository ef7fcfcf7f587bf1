// SPDX-License-Identifier: Apache-2.0
#include "cli/data.hpp"

#include "base/failure.hpp"
#include "cli/standard_output.hpp"
#include "data/data_generators.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace regatta {

int make_data_verb(const std::string& format, const std::string& folder) {
  const data_generator* const data = find_data_generator(format);
  if (!data)
    throw failure(exit_code::usage,
                  fmt::format("regatta: data make: no format \"{}\"; there are:\n{}", format, formats_of_data()));
  write_generated_data(*data, folder);
  print_output(fmt::format("{}: {}\n", folder, data->contents));
  return 0;
}

std::string formats_of_data() {
  std::string text;
  for (const data_generator& d : all_data_generators()) text += fmt::format("  {:<10} {}\n", d.format, d.contents);
  return text;
}

void generate_data(const experiment& e, const std::function<void(const std::string&)>& say) {
  for (const case_config& c : e.cases) {
    const auto missing = data_to_generate(c.data);
    if (!missing) continue;
    say(fmt::format("{} is missing: writing generated data into {}: {}", c.data.path, missing->folder.string(),
                    missing->data->contents));
    write_generated_data(*missing->data, missing->folder);
  }
}

} // namespace regatta
