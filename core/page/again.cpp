// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "page/sections.hpp"
#include "report/fields.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

void write_plugins(writer& w, const json& context) {
  page_table table;
  for (const char* header : {"kind", "plugin", "version", "SHA-256"}) table.columns.push_back({header, "", "", false});
  table.keys = 2;
  for (const json& plugin : context.value("plugins", json::array())) {
    page_row& row = table.rows.emplace_back();
    for (const char* member : {"kind", "id", "version", "sha256"})
      row.cells.push_back({plain_text(plugin.value(member, json())), nullptr, ""});
  }
  w.table(table);
}

void write_topology(writer& w, const json& host) {
  const json matrix = host.value("gpu_topology", json());
  if (!matrix.is_array()) return;
  w.subheading("Connections between GPUs");
  page_table table;
  table.keys = 1;
  table.columns.push_back({"", "", "", false});
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    table.columns.push_back({fmt::format("GPU {}", i), "", "", false});
    page_row& row = table.rows.emplace_back();
    row.cells.push_back({fmt::format("GPU {}", i), nullptr, ""});
    for (std::size_t j = 0; j < matrix.size(); ++j)
      row.cells.push_back({matrix[i].is_array() && j < matrix[i].size() ? plain_text(matrix[i][j]) : "-", nullptr, ""});
  }
  w.table(table);
}

} // namespace

void write_again(writer& w, const json& context, const std::string& toml) {
  w.heading("Run it again", "again");
  const auto text = [&](const char* member) { return plain_text(context.value(member, json())); };
  w.preformatted(text("command"));
  if (context.contains("cards"))
    w.paragraph(
        "As it was, and compared with this result: regatta run --again result.json, of one case with --case N.");
  w.paragraph(fmt::format("regatta {} ({}, {}), {}", text("regatta"), text("git"), text("build"), text("date")));
  for (const json& host : context.value("hosts", json::array())) {
    std::string libraries;
    const json known = host.value("libraries", json::object());
    for (const auto& [name, version] : known.items()) libraries += fmt::format("; {}", plain_text(version));
    w.paragraph(fmt::format("{}: {}, {} cores, {}{}", plain_text(host.value("name", json())),
                            plain_text(host.value("cpu", json())), plain_text(host.value("cores", json())),
                            plain_text(host.value("kernel", json())), libraries));
    write_topology(w, host);
  }
  write_plugins(w, context);
  for (const json& set : context.value("data", json::array()))
    w.paragraph(fmt::format("data {}: SHA-256 {}", plain_text(set.value("path", json())),
                            plain_text(set.value("sha256", json()))));
  if (toml.empty()) return;
  w.begin_details("Resolved TOML of the first case");
  w.preformatted(toml);
  w.end_details();
}

} // namespace regatta::page
