// SPDX-License-Identifier: Apache-2.0
#include "cli/artifact.hpp"

#include "artifact/artifact.hpp"
#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/standard_output.hpp"
#include "files/write_atomically.hpp"
#include "report/rounded.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace regatta {

namespace fs = std::filesystem;

int artifact_verb(const artifact_options& o) {
  if (!o.out.ends_with(".tar.gz") && !o.out.ends_with(".tgz"))
    throw failure(exit_code::usage, fmt::format("-o {}: expected a name that ends in .tar.gz", one_line(o.out)));
  packed_artifact packed = pack(o.result, {o.sources.begin(), o.sources.end()});
  for (const std::string& note : packed.notes) print_error("note: " + note + "\n");
  std::ranges::sort(packed.files, {}, &archived_file::name);
  std::string text;
  for (const archived_file& file : packed.files)
    text += fmt::format("  {:>9}  {}\n", human_bytes(static_cast<double>(file.content.size())), one_line(file.name));
  const std::string bytes = write_archive(std::move(packed.files));
  write_atomically(o.out, bytes);
  print_output(fmt::format("{}: {}\n{}", one_line(o.out), human_bytes(static_cast<double>(bytes.size())), text));
  return static_cast<int>(exit_code::done);
}

} // namespace regatta
