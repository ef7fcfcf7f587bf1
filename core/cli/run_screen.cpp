// SPDX-License-Identifier: Apache-2.0
#include "cli/run_screen.hpp"

#include "base/console.hpp"
#include "cli/indented_table.hpp"
#include "report/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace regatta {

run_screen::run_screen(const std::string& when)
    : live_(when == "always" || (when == "auto" && isatty(STDERR_FILENO))), json_(when == "json") {}

void run_screen::show(const progress& p) {
  if (!live_ && !json_) return;
  const std::string line = json_ ? progress_object(p) : progress_line(p, terminal_width(STDERR_FILENO));
  if (line == shown_) return;
  print_error(json_ ? line + "\n" : fmt::format("\r{}\x1b[K", line));
  shown_ = line;
}

void run_screen::say(const std::string& text) {
  clear();
  print_error((json_ ? message_object(text) : text) + "\n");
}

void run_screen::end(int exit_code, const std::string& result) {
  clear();
  if (json_) print_error(end_object(exit_code, result) + "\n");
}

void run_screen::clear() {
  if (!shown_.empty() && !json_) print_error("\r\x1b[K");
  shown_.clear();
}

} // namespace regatta
