// SPDX-License-Identifier: Apache-2.0
//
// [report] as a user meets it: it decides only what is shown, of a new result and of a stored one.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "program.hpp"

using namespace regatta::test;

namespace {

const std::string experiment = R"([model]
plugin = "null"
[cluster]
workers = 1
[measure]
warmup = 0
steps = 3
repeats = 2
baseline = false
[sweep]
"cluster.workers" = [1, 2]
)";

const std::string report = R"toml([[report]]
title = "Speed-up"
rows = "strategy.plugin"
columns = "cluster.workers"
value = "{samples_per_second:.0} ({samples_per_second:x})"
ratio_to = { "cluster.workers" = 1 }
[[report.context]]
row = "theirs"
source = "a paper"
ratio = true
values = { 1 = 228, 8 = 1612 }
)toml";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a changed [report] is no other experiment: --resume takes it over, and fingerprints are the same") {
  const temporary_folder s;
  s.write("x.toml", experiment);
  const std::string run = "run x.toml --out r --progress never ";
  REQUIRE(program(s, run).code == 0);
  const json before = parsed(s.read("r/result.json"));
  CHECK(before["context"]["experiment"]["report"] == json::array());

  s.write("x.toml", experiment + report);
  const outcome resumed = program(s, run + "--resume");
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(
      has(resumed.out, "\nSpeed-up: samples_per_second [samples/s, global], samples_per_second [ratio to workers 1]"));
  CHECK(has(resumed.out, "228 (1.00)"));
  CHECK(has(resumed.out, "1612 (7.07)"));
  CHECK(has(resumed.out, "[1] published by others, not measured here: a paper"));
  const json after = parsed(s.read("r/result.json"));
  CHECK(after["results"] == before["results"]); // nothing was measured again
  CHECK(after["context"]["experiment"]["report"].size() == 1);
  CHECK(program(s, run + "--resume").out == resumed.out);

  s.write("x.toml", experiment + "[train]\nbatch = 7\n" + report);
  CHECK(program(s, run + "--resume").code == 2);
}

TEST_CASE("a stored result in the tables of another file, in every format") {
  const temporary_folder s;
  s.write("x.toml", experiment);
  s.write("other.toml", report + "[train]\nbatch = \"not looked at\"\n");
  const outcome page = program(s, "run x.toml --out r --progress never --format html");
  CHECK(page.code == 0);
  CHECK(page.out.starts_with("<!DOCTYPE html>"));
  const std::string show = "report r --report other.toml --format ";
  CHECK_FALSE(has(program(s, "report r").out, "Speed-up"));
  for (const char* format : {"console", "markdown", "latex", "html"}) {
    CAPTURE(format);
    const outcome o = program(s, show + format);
    CHECK(o.code == 0);
    CHECK(has(o.out, "Speed-up: samples"));
    CHECK(has(o.out, "1612 (7.07)"));
    CHECK(has(o.out, "published by others, not measured here: a paper"));
  }
  CHECK(program(s, "report r --report other.toml -o x.tex").code == 0);
  CHECK(
      has(s.read("x.tex"), "\\begin{tabular}{lrrr}\n\\toprule\nstrategy \\textbackslash{} workers & 1 & 2 & 8 \\\\\n"));
  const std::string csv = program(s, show + "csv").out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 2 * 2); // headers, and two repeats of two cases
  CHECK(has(csv, "\n2,2,ok,"));
  CHECK_FALSE(has(csv, "theirs"));
  CHECK(parsed(program(s, show + "json").out)["results"][0]["report"].size() == 1);

  s.write("wrong.toml", "[report]\nrows = \"strategy.plugn\"\n");
  const outcome wrong = program(s, "report r --report wrong.toml");
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "wrong.toml:2:8: error: report.rows: expected report.columns and report.value beside it"));
  CHECK(has(wrong.err, "wrong.toml:2:8: error: report.rows: expected a key such as \"train.batch\", got"));
  CHECK(program(s, "report r --report x.toml").code == 2); // has no [report]
  CHECK(program(s, "run x.toml --dry-run --format latex").code == 2);
}
