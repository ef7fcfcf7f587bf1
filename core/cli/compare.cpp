// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/indented_table.hpp"
#include "cli/standard_output.hpp"
#include "compare/gate.hpp"
#include "compare/history.hpp"
#include "compare/render_comparison.hpp"
#include "report/stored_document.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

format known_format(const std::string& name) {
  const auto f = format_named(name);
  if (!f)
    throw failure(exit_code::usage,
                  fmt::format("--format {}: expected console, markdown, csv or json", one_line(name)));
  return *f;
}

compared_result result_at(const std::string& given) {
  return {one_line(given), read_stored(given, {"regatta.result/1"}).document};
}

std::size_t width_of_output() {
  return terminal_width(fileno(document_stream()));
}

} // namespace

int compare_verb(const compare_options& o) {
  const format f = known_format(o.format);
  std::vector<std::string> across;
  for (const std::string& list : o.across)
    for (std::string& part : split(list, ',')) {
      const auto& known = comparable_parts();
      if (std::find(known.begin(), known.end(), part) == known.end())
        throw failure(exit_code::usage, fmt::format("--across {}: expected parts of {}{}", one_line(part), join(known),
                                                    did_you_mean(part, known)));
      across.push_back(std::move(part));
    }
  std::vector<gate> gates;
  for (const std::string& text : o.gates) gates.push_back(parse_gate(text));
  std::vector<compared_result> results;
  for (const std::string& given : o.results) results.push_back(result_at(given));
  if (results.size() == 1 && results[0].document.at("results").size() < 2)
    throw failure(exit_code::usage,
                  fmt::format("{} has one case: expected a second result to compare it with", results[0].name));
  const comparison c = compare(results, across);
  std::vector<gate_result> checked;
  for (const gate& g : gates)
    for (gate_result& r : check_gate(g, c)) checked.push_back(std::move(r));
  print_output(render_comparison(c, checked, f, width_of_output()));
  const bool failed = std::any_of(checked.begin(), checked.end(), [](const gate_result& r) { return r.failed; });
  return static_cast<int>(failed ? exit_code::gate : exit_code::done);
}

int history_verb(const history_options& o) {
  const format f = known_format(o.format);
  const std::vector<std::string> names = history_figures();
  if (o.figure == "seconds_to_loss")
    throw failure(
        exit_code::usage,
        fmt::format("--figure seconds_to_loss: expected a figure of one result, and this is the time to a loss "
                    "that two compared results reach; set measure.target and use seconds_to_target, or one "
                    "of {}",
                    join(names)));
  if (std::find(names.begin(), names.end(), o.figure) == names.end())
    throw failure(exit_code::usage, fmt::format("--figure {}: expected one of {}{}", one_line(o.figure), join(names),
                                                did_you_mean(o.figure, names)));
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator at(o.folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename() == "result.json") files.push_back(at->path());
  if (error) throw failure(exit_code::usage, fmt::format("{}: {}", one_line(o.folder), error.message()));
  std::sort(files.begin(), files.end());
  std::vector<compared_result> results;
  for (const fs::path& file : files) {
    try {
      results.push_back(result_at(file.string()));
    } catch (const failure& e) {
      print_error(fmt::format("warning: left out: {}\n", e.what()));
    }
  }
  if (results.empty())
    throw failure(exit_code::usage,
                  fmt::format("{}: expected a folder with results (result.json), found none", one_line(o.folder)));
  print_output(render_history(std::move(results), o.figure, f, width_of_output()));
  return static_cast<int>(exit_code::done);
}

} // namespace regatta
