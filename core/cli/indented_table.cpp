// SPDX-License-Identifier: Apache-2.0
#include "cli/indented_table.hpp"

#include <sys/ioctl.h>

#include <utility>

namespace regatta {

std::string indented(std::vector<table_column> columns, std::vector<std::vector<std::string>> rows) {
  text_table table;
  table.columns = std::move(columns);
  for (auto& cells : rows) table.rows.push_back({std::move(cells), {}});
  std::string out = "  ";
  for (const char c : draw(table, 0)) {
    out += c;
    if (c == '\n') out += "  ";
  }
  out.resize(out.size() - 2);
  return out;
}

std::size_t terminal_width(int descriptor) {
  winsize w{};
  return ioctl(descriptor, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

} // namespace regatta
