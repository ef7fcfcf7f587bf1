// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/indented_table.hpp"
#include "cli/standard_output.hpp"
#include "comm/results.hpp"
#include "files/write_atomically.hpp"
#include "page/page.hpp"
#include "report/render.hpp"
#include "report/stored_document.hpp"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* comm_schema = "regatta.comm/1";

// Returns the document of a file or folder, with the resolved TOML of its first case: that of its run card, else the
// file beside it.
page::source source_of(const std::string& given) {
  stored_document stored = read_stored(given, {"regatta.result/1", comm_schema});
  page::source s;
  s.document = std::move(stored.document);
  const json cards = s.document.at("context").value("cards", json());
  if (cards.is_array() && !cards.empty()) s.toml = cards.front().at("toml").get<std::string>();
  for (const char* name : {"resolved.toml", "resolved-1.toml"})
    if (s.toml.empty() && s.document["schema"] != comm_schema)
      s.toml = content_of(stored.file.parent_path() / name).value_or("");
  return s;
}

// Returns the format's name: the one given, else that of the file's ending.
std::string format_of(const report_options& o) {
  if (!o.format.empty()) return o.format;
  const std::string ending = fs::path(o.out).extension();
  if (ending == ".html" || ending == ".htm") return "html";
  if (ending == ".md") return "markdown";
  if (ending == ".csv" || ending == ".json") return ending.substr(1);
  if (!o.out.empty())
    throw failure(
        exit_code::usage,
        fmt::format("-o {}: expected a name that ends in .html, .md, .csv or .json, or --format", one_line(o.out)));
  return "console";
}

std::string text_of(const page::source& s, format f, bool to_file) {
  const std::size_t width = to_file ? 0 : terminal_width(fileno(document_stream()));
  return s.document["schema"] == comm_schema ? comm::render_comm(s.document, f, width)
                                             : render(s.document, f, {width, ""});
}

void write_figures(const std::vector<page::figure>& figures, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw failure(exit_code::usage, fmt::format("{}: cannot make this folder: {}", folder.string(), error.message()));
  for (const page::figure& f : figures) {
    write_atomically(folder / (f.name + ".svg"), f.drawing.file(f.width, f.height, f.title));
    write_atomically(folder / (f.name + ".csv"), f.csv);
  }
}

// Returns the results in this format, or as a page, and writes the figures of the page.
std::string shown(const report_options& o, std::optional<format> f) try {
  std::vector<page::source> sources;
  for (const std::string& given : o.results) sources.push_back(source_of(given));
  std::string text;
  if (f) {
    for (const page::source& s : sources) text += (text.empty() ? "" : "\n") + text_of(s, *f, !o.out.empty());
    return text;
  }
  page::page made = page::render_page(sources);
  if (!o.figures.empty()) write_figures(made.figures, o.figures);
  return std::move(made.html);
} catch (const json::exception& e) { // results that were changed by hand, or of another version
  throw failure(
      exit_code::usage,
      fmt::format("{}: expected a complete result, got one in which a value is missing or of another type ({})",
                  one_line(join(o.results)), one_line(e.what())));
}

} // namespace

int report_verb(const report_options& o) {
  const std::string name = format_of(o);
  const auto format = format_named(name);
  if (!format && name != "html")
    throw failure(exit_code::usage,
                  fmt::format("--format {}: expected console, markdown, csv, json or html", one_line(name)));
  if (!o.figures.empty() && name != "html")
    throw failure(exit_code::usage, "--figures: the figures are those of the page; use it with --format html");
  if (o.results.size() > 1 && (name == "csv" || name == "json"))
    throw failure(exit_code::usage, fmt::format("--format {} takes one result, got {}", name, o.results.size()));
  const std::string text = shown(o, format);
  if (o.out.empty())
    print_output(text);
  else
    write_atomically(o.out, text);
  return static_cast<int>(exit_code::done);
}

} // namespace regatta
