// SPDX-License-Identifier: Apache-2.0
#include "comm/results.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "comm/matrix.hpp"
#include "comm/patterns.hpp"
#include "report/latex.hpp"
#include "report/text_table.hpp"
#include "results/statistics.hpp"
#include "text/values.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::comm {

using nlohmann::json;

namespace {

json entry_of(const plan& p, std::size_t index, const std::vector<std::vector<measurement>>& by_rank) {
  const measurement& first = by_rank.front().at(index);
  std::vector<double> slowest;
  std::uint64_t wrong = 0;
  double cpu = 0;
  for (const auto& rank : by_rank) {
    const measurement& m = rank.at(index);
    slowest.resize(std::max(slowest.size(), m.ns.size()));
    for (std::size_t i = 0; i < m.ns.size(); ++i)
      slowest[i] = std::max(slowest[i], static_cast<double>(m.ns[i]) * 1e-9);
    wrong += m.wrong;
    cpu += m.cpu_seconds;
  }
  const double median = regatta::median(slowest).value_or(0), bandwidth = static_cast<double>(first.bytes) / median;
  // For `send`, `ns` is the time of one message, and an iteration is two messages.
  const double messages = static_cast<double>(slowest.size()) * (first.what.op == "send" ? 2 : 1);
  return {
      {"transport", p.transport},
      {"op", first.what.op},
      {"algorithm", text_or_null(first.what.algorithm)},
      {"ranks", p.ranks},
      {"wait", p.spin_ns ? "spinning" : "blocking"},
      {"bytes", first.bytes},
      {"iterations", slowest.size()},
      {"seconds",
       {{"median", median}, {"p99", quantile(slowest, 0.99).value_or(0)}, {"min", quantile(slowest, 0).value_or(0)}}},
      {"algorithm_bandwidth", bandwidth},
      {"bus_bandwidth", bandwidth * bus_factor(first.what.op, p.ranks)},
      {"wrong", wrong},
      {"cpu_seconds", cpu / messages}};
}

std::string rate(double bytes_per_second) {
  return fmt::format("{:.3g}", bytes_per_second * 1e-9);
}

std::string microseconds(double seconds) {
  return fmt::format("{:.{}f}", seconds * 1e6, seconds < 1e-4 ? 2 : 1);
}

text_table table_of(const json& results) {
  text_table t;
  t.columns = {{"transport"},        {"op"},
               {"algorithm"},        {"ranks", true},
               {"size", true},       {"median us", true},
               {"p99 us", true},     {"algbw GB/s", true},
               {"busbw GB/s", true}, {"#wrong", true},
               {"CPU us", true, 1},  {"iterations", true, 2}};
  t.keys = 5;
  for (const json& r : results)
    t.rows.push_back(
        {{r.at("transport"), r.at("op"), r.at("algorithm").is_null() ? "-" : r.at("algorithm"), r.at("ranks").dump(),
          exact_bytes(r.at("bytes").get<std::int64_t>()), microseconds(r.at("seconds").at("median")),
          microseconds(r.at("seconds").at("p99")), rate(r.at("algorithm_bandwidth")), rate(r.at("bus_bandwidth")),
          r.at("wrong").dump(), microseconds(r.at("cpu_seconds")), r.at("iterations").dump()},
         ""});
  return t;
}

// The columns are the members of an entry, with those of "seconds" as seconds.NAME.
std::string csv_of(const json& results) {
  const std::vector<std::string> columns = {"transport",   "op",          "algorithm",           "ranks",
                                            "wait",        "bytes",       "iterations",          "seconds.median",
                                            "seconds.p99", "seconds.min", "algorithm_bandwidth", "bus_bandwidth",
                                            "wrong",       "cpu_seconds"};
  std::string out = join(columns, ",") + "\n";
  for (const json& r : results) {
    std::vector<std::string> cells;
    for (const std::string& name : columns) {
      const json& value = name.starts_with("seconds.") ? r.at("seconds").at(name.substr(8)) : r.at(name);
      cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    out += join(cells, ",") + "\n";
  }
  return out;
}

std::string heading_of(const json& context, bool with_formulas) {
  std::string text;
  for (const json& host : context.at("hosts"))
    text += fmt::format("{}{}, {} cores   regatta {} ({})\n",
                        context.at("hosts").size() > 1 ? host.value("name", "?") + ": " : "",
                        host.value("cpu", json("unknown CPU")).dump(), host.value("cores", json("?")).dump(),
                        context.at("regatta").get<std::string>(), context.value("build", "?"));
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  for (const json& w : context.at("warnings")) text += "warning: " + w.get<std::string>() + "\n";
  return with_formulas ? text + formulas() + "\n" : text;
}

std::string failures_of(const json& document) {
  std::string failures;
  for (const json& failed : document.at("failures"))
    failures += fmt::format("failed: {}\n", one_line(failed.at("error").get<std::string>()));
  return failures;
}

std::string render_matrices(const json& document, const json& matrices, format f) {
  if (f == format::csv) return matrix_csv(matrices);
  std::string text;
  for (const json& m : matrices) text += (text.empty() ? "" : "\n") + matrix_text(m);
  if (f == format::markdown) return "```\n" + text + "```\n";
  return heading_of(document.at("context"), false) + "\n" + text + failures_of(document);
}

} // namespace

std::string formulas() {
  return "time      per operation, of the slowest rank; `send`: half of a round trip\n"
         "algbw     size / time\n"
         "busbw     algbw x 2(n-1)/n for allreduce, x (n-1)/n for reducescatter, allgather and alltoall, x 1 for\n"
         "          broadcast and send, x 2 for push_pull (both directions)\n"
         "#wrong    wrong elements in the results of two checked operations\n"
         "CPU       per operation, of all ranks together\n"
         "size      of the whole buffer: each rank gets (reducescatter) or contributes (allgather) 1/n of it\n"
         "push_pull all ranks but the last send to the last one, which sums in the order of ranks and sends the sum "
         "back\n";
}

json entries_of(const plan& p, const std::vector<std::vector<measurement>>& by_rank) {
  json all = json::array();
  for (std::size_t i = 0; i < by_rank.at(0).size(); ++i) all.push_back(entry_of(p, i, by_rank));
  return all;
}

std::string render_comm(const json& document, format f, std::size_t width) {
  const json& results = document.at("results");
  if (f == format::json) return document_text(document);
  if (const auto m = document.find("matrix"); m != document.end()) return render_matrices(document, *m, f);
  if (f == format::csv) return csv_of(results);
  text_table table = table_of(results);
  if (f == format::markdown) return draw_markdown(table);
  if (f == format::latex) return draw_latex(table, "", table.rows.size(), {});
  fit(table, width);
  return heading_of(document.at("context"), true) + draw(table, width) + failures_of(document);
}

} // namespace regatta::comm
