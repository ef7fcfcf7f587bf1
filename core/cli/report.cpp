// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/indented_table.hpp"
#include "cli/standard_output.hpp"
#include "comm/results.hpp"
#include "files/write_atomically.hpp"
#include "page/page.hpp"
#include "report/render.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* comm_schema = "regatta.comm/1";

// Returns std::nullopt if the file cannot be read.
std::optional<std::string> content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  return in.bad() ? std::nullopt : std::optional(std::move(text));
}

// Returns the document of a file or folder, with the resolved TOML beside it.
page::source source_of(const std::string& given) {
  std::error_code error;
  const fs::path file = fs::is_directory(given, error) ? fs::path(given) / "result.json" : fs::path(given);
  const auto refuse = [&](const std::string& why) {
    return failure(exit_code::usage, fmt::format("{}: {}", one_line(file.string()), why));
  };
  const auto text = content_of(file);
  if (!text)
    throw refuse("cannot be read; expected a result.json, its folder, or the output of `regatta comm --format json`");
  page::source s;
  try {
    s.document = parse_json(*text);
  } catch (const failure& e) {
    throw refuse(e.what());
  }
  const json schema = s.document.is_object() ? s.document.value("schema", json()) : json();
  if (schema != "regatta.result/1" && schema != comm_schema)
    throw refuse(fmt::format("expected a document of schema regatta.result/1 or {}, got {}", comm_schema,
                             one_line(schema.dump(-1, ' ', false, json::error_handler_t::replace))));
  for (const char* name : {"resolved.toml", "resolved-1.toml"})
    if (s.toml.empty() && schema != comm_schema) s.toml = content_of(file.parent_path() / name).value_or("");
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
  std::vector<page::source> sources;
  for (const std::string& given : o.results) sources.push_back(source_of(given));
  std::string text;
  if (format) {
    for (const page::source& s : sources) text += (text.empty() ? "" : "\n") + text_of(s, *format, !o.out.empty());
  } else {
    page::page shown = page::render_page(sources);
    if (!o.figures.empty()) write_figures(shown.figures, o.figures);
    text = std::move(shown.html);
  }
  if (o.out.empty())
    print_output(text);
  else
    write_atomically(o.out, text);
  return static_cast<int>(exit_code::done);
}

} // namespace regatta
