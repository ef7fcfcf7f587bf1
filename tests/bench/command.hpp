// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include <sys/wait.h>

namespace regatta::bench {

// Standard output of a command, or nothing where it fails; standard error goes where ours goes.
inline std::optional<std::string> output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t n = fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), n);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

} // namespace regatta::bench
