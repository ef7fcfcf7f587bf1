// SPDX-License-Identifier: Apache-2.0
#include "cli/trace.hpp"

#include "base/failure.hpp"
#include "cli/indented_table.hpp"
#include "cli/standard_output.hpp"
#include "report/text_table.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/perfetto.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace regatta {
namespace {

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f} %", whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

std::string milliseconds(std::uint64_t ns) {
  return fmt::format("{:.3f}", static_cast<double>(ns) * 1e-6);
}

text_table table_of(const std::vector<path_share>& shares, std::uint64_t length, std::size_t top) {
  text_table table;
  table.columns = {{"share", true}, {"ms", true}, {"rank", true}, {"what"}};
  std::uint64_t rest = 0;
  for (std::size_t k = 0; k < shares.size(); ++k)
    if (k < top)
      table.rows.push_back(
          {{percent(shares[k].ns, length), milliseconds(shares[k].ns), std::to_string(shares[k].rank), shares[k].what},
           ""});
    else
      rest += shares[k].ns;
  if (rest)
    table.rows.push_back({{percent(rest, length), milliseconds(rest), "",
                           fmt::format("{} others (--top shows more)", shares.size() - top)},
                          ""});
  return table;
}

} // namespace

std::vector<rank_trace> read_trace(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  if (!in && bytes.empty())
    throw failure(exit_code::usage, fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
  try {
    return read_perfetto_file(bytes);
  } catch (const failure& e) {
    throw failure(e.code(), fmt::format("{}: {}", file, e.what()));
  }
}

int trace_verb(const trace_options& o) {
  const std::vector<rank_trace> ranks = read_trace(o.file);
  const std::vector<std::uint64_t> steps = steps_of(ranks);
  if (steps.empty()) throw failure(exit_code::usage, fmt::format("{}: it has no whole step of a worker", o.file));
  const auto path = critical_path_of(ranks, o.step.value_or(steps.back()));
  if (!path)
    throw failure(exit_code::usage, fmt::format("--step {}: expected one of the steps in {}: {}", *o.step, o.file,
                                                fmt::join(steps, ", ")));
  std::string text = fmt::format("{}: {} rank{}, steps {}\n", o.file, ranks.size(), ranks.size() == 1 ? "" : "s",
                                 fmt::join(steps, ", "));
  for (const rank_trace& r : ranks)
    if (r.dropped) text += fmt::format("warning: {} events of rank {} were dropped\n", r.dropped, r.rank);
  const auto part = [&](path_part of) { return percent(ns_of(*path, of), path->length()); };
  text += fmt::format("critical path of step {}: {} ms, ends on rank {}\n"
                      "computing {}, waiting for messages {}, strategy and its operations {}\n\n",
                      path->step, milliseconds(path->length()), path->rank, part(path_part::computing),
                      part(path_part::messages), part(path_part::strategy));
  text += draw(table_of(shares_of(*path), path->length(), o.top), terminal_width(fileno(document_stream())));
  print_output(text);
  return 0;
}

} // namespace regatta
