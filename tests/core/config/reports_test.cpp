// SPDX-License-Identifier: Apache-2.0
//
// The tables of [report]: what a file may ask for, and errors with their positions.
#include <doctest/doctest.h>

#include "config/cell_template.hpp"
#include "config/reports.hpp"
#include "config_catalogue.hpp"
#include "json.hpp"

using namespace regatta;
using regatta::test::json;

namespace {

const std::string mlp = "[model]\nplugin = \"mlp\"\n";
const std::string three = "rows = \"strategy.plugin\"\ncolumns = \"cluster.workers\"\nvalue = \"efficiency\"\n";

std::string after_model(const std::string& text, const overrides& o = {}) {
  return complaint(mlp + text, o);
}

// The errors of a table that is complete before `text`, which begins in line 7.
std::string of_table(const std::string& text) {
  return after_model("[report]\n" + three + text);
}

std::string cell_error_of(const json& value, bool ratio = false) {
  try {
    cell_template_of(value, ratio);
    return "";
  } catch (const cell_error& e) {
    return e.what();
  }
}

} // namespace

TEST_CASE("a report that no table can be made of") {
  const auto report = [](const std::string& rows, const std::string& columns, const std::string& value) {
    return after_model("[report]\nrows = \"" + rows + "\"\ncolumns = \"" + columns + "\"\nvalue = \"" + value + "\"\n");
  };
  CHECK(report("train.bacth", "strategy.plugin", "efficiency") ==
        "f.toml:4:8: error: report.rows: expected a key such as \"train.batch\", got \"train.bacth\"");
  CHECK(report("train.batch", "model.depth", "efficiency") ==
        "f.toml:5:11: error: report.columns: expected a key such as \"train.batch\", got \"model.depth\"");
  CHECK(
      report("train.batch", "strategy.plugin", "eficiency") ==
      "f.toml:6:9: error: report.value: expected a figure that a result has, such as \"samples_per_second\", or a key "
      "such as \"train.batch\", got \"eficiency\", did you mean \"efficiency\"?");
  CHECK(report("train.batch", "strategy.plugin", "time") != "");
  CHECK(
      after_model("[report]\ncolumns = \"train.batch\"\n") ==
      "f.toml:4:11: error: report.columns: expected report.rows and report.value beside it: a table has rows, columns "
      "and a value");
  CHECK(after_model("[report]\n") == "f.toml:3:1: error: report: expected report.rows, report.columns, report.value: a "
                                     "table has rows, columns and a value");
  for (const char* value : {"efficiency", "lost.wait", "step_seconds.p99", "strategy.staleness.mean", "cluster.workers",
                            "model.dropout", "strategy.geo_ps.k", "efficiency:%", "{efficiency} of {loss.last:.3}"}) {
    CAPTURE(value);
    CHECK(report("model.hidden", "strategy.plugin", value) == "");
  }
}

TEST_CASE("wrong keys and values of a report are refused at their place") {
  CHECK(of_table("colums = 3\n") == "f.toml:7:1: error: report.colums: no such key, did you mean \"report.columns\"?");
  CHECK(of_table("zzz = 3\n") == "f.toml:7:1: error: report.zzz: no such key; [report] has title, rows, columns, "
                                 "value, list, ratio_to, where, labels, context");
  CHECK(of_table("title = 3\n") == "f.toml:7:9: error: report.title: expected a text, got 3");
  CHECK(of_table("list = \"train.bach\"\n") ==
        "f.toml:7:8: error: report.list: expected a key such as \"train.batch\", got \"train.bach\"");
  CHECK(of_table("where = { \"train.bach\" = 3 }\n") ==
        "f.toml:7:11: error: report.where: expected a key such as \"cluster.workers\", got \"train.bach\"");
  CHECK(of_table("where = { \"train.batch\" = 2020-01-01 }\n") ==
        "f.toml:7:27: error: report.where: expected a number, a text, true or false, got a date or time");
  CHECK(of_table("ratio_to = 1\n").starts_with("f.toml:7:12: error: report.ratio_to: expected a table with the value"));
  CHECK(of_table("labels = { efficiency = 1 }\n") ==
        "f.toml:7:25: error: report.labels: expected a text for \"efficiency\", got 1");
  CHECK(of_table("labels = { \"cluster.worker\" = \"GPUs\" }\n")
            .starts_with("f.toml:7:12: error: report.labels: expected a key, a figure, or the text of a row or column, "
                         "got \"cluster."));
  CHECK(of_table(
            "labels = { \"cluster.workers\" = \"GPUs\", efficiency = \"E\", sync_ps = \"PS\", \"8.5\" = \"9\" }\n") ==
        "");
  CHECK(complaint("report = 5\n" + mlp) == "f.toml:1:10: error: report: expected a table, got 5");
  CHECK(after_model("[[report]]\n" + three + "[[report]]\nrows = \"train.batch\"\n") ==
        "f.toml:8:8: error: report.rows: expected report.columns and report.value beside it: a table has rows, columns "
        "and a value");
}

TEST_CASE("a cell: figures, lists, texts and their formats") {
  using style = cell_figure::style;
  const cell_template one = cell_template_of("{samples_per_second:.1} ({efficiency:.0%}) {{x}}", false);
  CHECK(one.texts == std::vector<std::string>{"", " (", ") {x}"});
  REQUIRE(one.figures.size() == 2);
  CHECK(one.figures[0].path == "samples_per_second");
  CHECK(one.figures[0].decimals == 1);
  CHECK(one.figures[1].is == style::percentage);
  CHECK(one.figures[1].decimals == 0);
  const cell_template list = cell_template_of({"loss.first", "loss.last"}, false);
  CHECK(list.texts == std::vector<std::string>{"", "/", ""});
  CHECK(cell_template_of({"efficiency", "speedup:.1"}, true).figures[0].is == style::ratio);
  CHECK(cell_template_of({"efficiency", "speedup:.1"}, true).figures[1].is == style::number);
  CHECK(cell_template_of("{speedup} {speedup:.1x}", true).figures[0].is == style::number);
  for (const json& wrong :
       {json("{efficiency"), json("efficiency}"), json("{}"), json("{efficiency:%%}"), json("efficiency:"),
        json("efficiency:d"), json(""), json(3), json::array(), json::array({"efficiency", 3}), json("a {{b}}")}) {
    CAPTURE(wrong);
    CHECK(cell_error_of(wrong) != "");
  }
  CHECK(cell_error_of("{speedup:x}") ==
        "expected ratio_to beside a ratio (:x), such as ratio_to = { \"cluster.workers\" = 1 }");
  CHECK(cell_error_of("{speedup}", true) == "expected a ratio for ratio_to, such as {samples_per_second:x}, got none");
  CHECK(of_table("").empty());
  CHECK(after_model("[report]\nrows = \"strategy.plugin\"\ncolumns = \"train.batch\"\nvalue = [\"efficiency\", "
                    "\"los.last\"]\n")
            .starts_with("f.toml:6:24: error: report.value: expected a figure that a result has"));
}

TEST_CASE("published rows have a row, a source and values that fit the cell") {
  const auto row = [](const std::string& values, const std::string& rest = "") {
    return of_table("[[report.context]]\nrow = \"theirs\"\nsource = \"a paper\"\nvalues = " + values + "\n" + rest);
  };
  CHECK(row("{ 1 = 228, 2 = \"about 427\", 4 = [802] }") == "");
  CHECK(row("{ 1 = true }") ==
        "f.toml:10:16: error: report.context.values: expected a number, a text, or a list of them, got true");
  CHECK(row("{ 1 = [228, 3] }") ==
        "f.toml:10:16: error: report.context.values: expected 1 number as report.value has, or a text, got [228, 3]");
  CHECK(row("{}").starts_with("f.toml:10:10: error: report.context.values: expected a table with a value for each"));
  CHECK(row("{ 1 = 228 }", "ratio = 3\n") == "f.toml:11:9: error: report.context.ratio: expected true or false, got 3");
  CHECK(row("{ 1 = 228 }", "ratio = true\n")
            .starts_with("f.toml:11:9: error: report.context.ratio: expected report.ratio_to with the key of the rows "
                         "or of the columns"));
  CHECK(row("{ 1 = 228 }", "url = \"x\"\n") ==
        "f.toml:11:1: error: report.context.url: no such key; [[report.context]] has row, source, values, ratio");
  CHECK(of_table("[[report.context]]\nrow = \"theirs\"\nvalues = { 1 = 3 }\n") ==
        "f.toml:7:1: error: report.context.source: must be given: published figures have a row, a source and values");
  CHECK(of_table("context = 3\n") ==
        "f.toml:7:11: error: report.context: expected tables, each under [[report.context]], got 3");
}

TEST_CASE("several reports, nested keys, and one that --set changes") {
  const std::string two = "[[report]]\n" + three + "ratio_to = { cluster.workers = 1 }\n[[report.context]]\n" +
                          "row = \"theirs\"\nsource = \"a paper\"\nratio = true\n[report.context.values]\n1 = 228\n" +
                          "[[report]]\ntitle = \"again\"\n" + three;
  const json reports = load(mlp + two).reports;
  REQUIRE(reports.size() == 2);
  CHECK(reports[0]["ratio_to"] == json{{"cluster.workers", 1}});
  CHECK(reports[0]["context"] ==
        json::array({{{"row", "theirs"}, {"source", "a paper"}, {"ratio", true}, {"values", {{"1", 228}}}}}));
  CHECK(reports[1]["title"] == "again");

  const std::string one = "[report]\n" + three;
  CHECK(load(mlp + one, {{"report.value=loss.last"}, {}}).reports[0]["value"] == "loss.last");
  CHECK(load(mlp, {{"report.rows=train.batch", "report.columns=cluster.workers", "report.value=loss.last"}, {}})
            .reports.size() == 1);
  CHECK(after_model(one, {{"report.value=los.last"}, {}}).starts_with("--set report.value: expected a figure"));
  CHECK(
      after_model(two, {{"report.value=loss.last"}, {}}).starts_with("--set report.value: expected report.KEY=VALUE"));
  CHECK(after_model(one, {{}, {"report.value=loss.last"}}) == "--sweep report.value: cannot be swept");
}

TEST_CASE("the tables of another file, whatever else it has") {
  const scratch_folder folder;
  const auto known = [](const std::string& path) { return path == "strategy.plugin" || path == "cluster.workers"; };
  CHECK(load_reports(folder.write("a.toml", "[model]\nplugin = 5\n[report]\n" + three), known).size() == 1);
  const auto refusal = [&](const std::string& text) {
    try {
      load_reports(folder.write("b.toml", text), known);
    } catch (const failure& f) {
      CHECK(f.code() == exit_code::usage);
      return std::string(f.what()).substr(folder.path.string().size() + 1);
    }
    return std::string();
  };
  CHECK(refusal(mlp) == "b.toml:1:1: error: report: expected [report] or [[report]] in this file, found none");
  CHECK(refusal("[report]\nlist = \"train.batch\"\n" + three) ==
        "b.toml:2:8: error: report.list: expected a key such as \"train.batch\", got \"train.batch\"");
  CHECK(refusal("[report").starts_with("b.toml:1:"));
  CHECK_THROWS_AS(load_reports(folder.path / "none.toml", known), failure);
}
