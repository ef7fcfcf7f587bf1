// SPDX-License-Identifier: Apache-2.0
//
// The tables that [report] asks for: several values in a cell, ratios, labels, published figures; LaTeX and CSV.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "report/latex.hpp"
#include "report/pivot.hpp"
#include "report/render.hpp"
#include "report_fixture.hpp"

using namespace regatta;
using report_fixture::json;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Strategies over workers; the servers are zipped with the workers.
json scaling() {
  json result = report_fixture::result();
  json entries = json::array();
  for (const std::string strategy : {"allreduce", "sync_ps"})
    for (const int workers : {1, 2, 4}) {
      const double efficiency = workers == 1 ? 1 : strategy == "allreduce" ? 0.9 : 0.786;
      json e = report_fixture::entry(
          {{"strategy.plugin", strategy}, {"cluster.workers", workers}, {"cluster.servers", 2 * workers}}, strategy,
          workers, 2 * workers, 100 * workers * efficiency);
      report_fixture::scale(e, efficiency, nullptr);
      entries.push_back(std::move(e));
    }
  result["results"] = entries;
  return result;
}

json& report_of(json& result) {
  return result["context"]["experiment"]["report"];
}

const json by_strategy = {{"rows", "cluster.workers"}, {"columns", "strategy.plugin"}, {"value", "samples_per_second"}};

json with(json table, const json& more) {
  table.update(more);
  return table;
}

std::string drawn(json result, const json& report, bool markdown = false) {
  report_of(result) = report;
  return render_pivot(result, markdown);
}

} // namespace

TEST_CASE("a key that only changes together with rows or columns does not divide the table") {
  CHECK(drawn(scaling(), json::array({by_strategy})) == R"(samples_per_second [samples/s, global]
workers \ strategy  allreduce  sync_ps
1                       100.0    100.0
2                       180.0    157.2
4                       360.0    314.4
)");
}

TEST_CASE("several figures in a cell, with a title and labels, in several reports") {
  const json first = with(by_strategy, {{"title", "Scaling"},
                                        {"value", "{samples_per_second} ({efficiency:%})"},
                                        {"labels",
                                         {{"cluster.workers", "trainers"},
                                          {"strategy.plugin", "mode"},
                                          {"sync_ps", "parameter server"},
                                          {"efficiency", "E"},
                                          {"4", "four"}}}});
  const json second = with(by_strategy, {{"value", {"samples_per_second:.0", "efficiency"}}});
  CHECK(drawn(scaling(), json::array({first, second})) ==
        R"(Scaling: samples_per_second [samples/s, global], E [%, global]
trainers \ mode        allreduce  parameter server
1                100.0 (100.0 %)   100.0 (100.0 %)
2                 180.0 (90.0 %)    157.2 (78.6 %)
four              360.0 (90.0 %)    314.4 (78.6 %)

samples_per_second [samples/s, global], efficiency [ratio, global]
workers \ strategy  allreduce    sync_ps
1                   100/1.000  100/1.000
2                   180/0.900  157/0.786
4                   360/0.900  314/0.786
)");
}

TEST_CASE("a list has the values of a key side by side, and `where` selects cases") {
  json result = scaling();
  result["results"][1]["status"] = "failed";
  CHECK(drawn(result, json::array({{{"rows", "strategy.plugin"},
                                    {"columns", "train.batch"},
                                    {"list", "cluster.workers"},
                                    {"value", "samples_per_second:.0"},
                                    {"where", {{"strategy.plugin", "allreduce"}}}}})) ==
        R"(samples_per_second [samples/s, global] for workers 1, 2, 4: strategy allreduce
strategy \ batch        128
allreduce         100/-/360
)");
  CHECK(drawn(result, json::array({with(by_strategy, {{"title", "none"}, {"where", {{"train.batch", 7}}}})})) ==
        "none\nno case has batch 7\n");
}

TEST_CASE("ratios refer to the case that differs in the reference only") {
  const json speedup = with(by_strategy, {{"ratio_to", {{"cluster.workers", 1}}}});
  CHECK(drawn(scaling(), json::array({speedup})) == R"(samples_per_second [ratio to workers 1]
workers \ strategy  allreduce  sync_ps
1                        1.00     1.00
2                        1.80     1.57
4                        3.60     3.14
)");
  const json beside = with(by_strategy, {{"value", "{samples_per_second:.0} ({samples_per_second:.1x}x)"},
                                         {"ratio_to", {{"strategy.plugin", "allreduce"}}}});
  CHECK(has(drawn(scaling(), json::array({beside})), "\n4                   360 (1.0x)  314 (0.9x)\n"));
  json failed = scaling();
  failed["results"][0]["status"] = "failed";
  CHECK(has(drawn(failed, json::array({beside})), "\n1                            -    100 (-x)\n"));
  CHECK(has(drawn(scaling(), json::array({with(by_strategy, {{"ratio_to", {{"cluster.workers", 3}}}})})),
            "\nno ratios: no case has workers 3\n"));
}

TEST_CASE("published figures are marked as those of others, and divided only if asked, by their own") {
  const json theirs = {{"row", "Fluid"},
                       {"source", "a paper"},
                       {"ratio", false},
                       {"values", {{"2", 200}, {"20", {263}}, {"100", "about 1019"}}}};
  json also = theirs;
  also["row"] = "v2";
  also["source"] = "another | paper";
  also["values"] = {{"1", 17.04}};
  const json table = {{"rows", "strategy.plugin"},
                      {"columns", "cluster.workers"},
                      {"value", "samples_per_second"},
                      {"context", {theirs, also, theirs}}};
  CHECK(drawn(scaling(), json::array({table})) ==
        R"(samples_per_second [samples/s, global]
strategy \ workers      1      2      4   20         100
allreduce           100.0  180.0  360.0    -           -
sync_ps             100.0  157.2  314.4    -           -
Fluid [1]               -    200      -  263  about 1019
v2 [2]              17.04      -      -    -           -
Fluid [1]               -    200      -  263  about 1019
[1] published by others, not measured here: a paper
[2] published by others, not measured here: another | paper
)");
  json result = scaling();
  report_of(result) = json::array({table});
  const std::vector<pivot_table> tables = pivot_tables(result);
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].own_rows == 2);
  CHECK(tables[0].values[1][2] == result["results"][4]["samples_per_second"]["median"]);
  for (const json& value : tables[0].values[2]) CHECK(value.is_null()); // never as a figure of the result
  CHECK(has(render(result, format::markdown), "\n[2] published by others, not measured here: another \\| paper\n"));
  for (const format f : {format::csv}) CHECK_FALSE(has(render(result, f), "Fluid"));

  json ratios = table;
  ratios["value"] = "{samples_per_second:.0} {samples_per_second:x}";
  ratios["ratio_to"] = {{"cluster.workers", 1}};
  for (json& row : ratios["context"]) row["values"] = {{"1", {114, 1}}, {"2", {1901, 16.7}}};
  CHECK(has(drawn(scaling(), json::array({ratios}), true), "\n| Fluid [1] | 114 1 | 1901 16.7 | - |\n"));
  for (json& row : ratios["context"]) {
    row["values"] = {{"1", 114}, {"2", 1901}, {"4", "fast"}};
    row["ratio"] = true;
  }
  CHECK(has(drawn(scaling(), json::array({ratios}), true), "\n| Fluid [1] | 114 1.00 | 1901 16.68 | fast |\n"));
  ratios["value"] = "samples_per_second";
  ratios["ratio_to"] = {{"strategy.plugin", "v2"}}; // the row of another source is no reference
  CHECK(has(drawn(scaling(), json::array({ratios}), true), "\n| Fluid [1] | - | - | fast |\n"));
  CHECK(has(drawn(scaling(), json::array({ratios}), true), "\n| v2 [2] | 1.00 | 1.00 | fast |\n"));
}

TEST_CASE("results of earlier versions have one report, or one that is empty") {
  CHECK(drawn(scaling(), {{"rows", ""}, {"columns", ""}, {"value", ""}}).empty());
  CHECK(drawn(scaling(), json::array()).empty());
  CHECK(drawn(scaling(), by_strategy).starts_with("samples_per_second [samples/s, global]\n"));
}

TEST_CASE("LaTeX: booktabs, escaped texts, and a rule before what others have published") {
  CHECK(latex_text("50 % of a_b & c{d} \\ [1] *") == "50 \\% of a\\_b \\& c\\{d\\} \\textbackslash{} {[}1{]} {*}");
  CHECK(latex_text("\"2.31\" → 1.94 ± 0.97–0.99 … é") == "''2.31'' $\\rightarrow$ 1.94 $\\pm$ 0.97--0.99 \\ldots{} é");
  json result = scaling();
  result["results"].erase(5);
  report_of(result) = json::array(
      {with(by_strategy, {{"title", "A_B"},
                          {"context", {{{"row", "Fluid"}, {"source", "5 % of"}, {"values", {{"sync_ps", 263}}}}}}})});
  const std::string text = render(result, format::latex);
  CHECK(has(text, R"(\begin{table}
\centering
\caption{A\_B: samples\_per\_second {[}samples/s, global{]}}
\begin{tabular}{lrr}
\toprule
workers \textbackslash{} strategy & allreduce & sync\_ps \\
\midrule
1 & 100.0 & 100.0 \\
2 & 180.0 & 157.2 \\
4 & 360.0 & -- \\
\midrule
Fluid {[}1{]} & -- & 263 \\
\bottomrule
\end{tabular}
\par\footnotesize {[}1{]} published by others, not measured here: 5 \% of
\end{table}
)"));
  // Each line of a tabular has as many cells as the tabular has columns.
  std::istringstream lines(text);
  std::size_t columns = 0, checked = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string begin = "\\begin{tabular}{";
    if (line.starts_with(begin)) columns = line.size() - begin.size() - 1;
    if (!line.ends_with("\\\\") || has(line, "\\multicolumn")) continue;
    std::size_t separators = 0;
    for (std::size_t i = 0; i < line.size(); ++i) separators += line[i] == '&' && (i == 0 || line[i - 1] != '\\');
    CHECK_MESSAGE(separators + 1 == columns, line);
    ++checked;
  }
  CHECK(checked == 6 + 5); // headers and rows of both tables
}

TEST_CASE("CSV has a row for each repeat, with its own figures beside those of the case") {
  json result = report_fixture::result();
  result["results"] = json::array({result["results"][1], result["results"][2]});
  const auto run = [](double rate) {
    return json{{"samples_per_second", rate},
                {"loss", {{"first", 2.5}, {"curve", {2.5, 1.5}}, {"steps", {0, 1}}}},
                {"step_seconds", {{"per_rank", {{0.1, 0.2}}}, {"steps", {{0, 1}}}}},
                {"cpu_seconds", {1.5, 1.25}}};
  };
  result["results"][0]["repeats"] = json::array({{{"case", run(180)},
                                                  {"baseline", run(100)},
                                                  {"baseline_again", run(101)},
                                                  {"contention", run(190)},
                                                  {"disturbed", json::array()}},
                                                 {{"case", run(150)},
                                                  {"baseline", nullptr},
                                                  {"baseline_again", nullptr},
                                                  {"contention", nullptr},
                                                  {"disturbed", {"fma"}}}});
  const json rows = repeat_rows(result)["results"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["repeat"] == 1);
  CHECK(rows[0]["run"]["samples_per_second"] == 180.0);
  CHECK(rows[0]["run"]["efficiency"] == 0.9);
  CHECK(rows[0]["run"]["speedup"] == 1.8);
  CHECK(rows[0]["run"]["noise"] == 1.01);
  CHECK(rows[0]["run"]["contention"] == 0.95);
  CHECK(rows[0]["run"]["loss"] == json{{"first", 2.5}});
  CHECK_FALSE(rows[0]["run"].contains("step_seconds"));
  CHECK(rows[0]["samples_per_second"]["median"] == 273.0);
  CHECK(rows[1]["repeat"] == 2);
  CHECK(rows[1]["run"]["efficiency"].is_null());
  CHECK(rows[2]["repeat"].is_null());
  const std::string csv = render(result, format::csv), header = csv.substr(0, csv.find('\n'));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK(has(header, "case.transport.plugin,repeat,status,"));
  CHECK(has(header, ",run.samples_per_second"));
  CHECK(has(csv, "\n2,allreduce,shm,2,ok,"));
}
