// SPDX-License-Identifier: Apache-2.0
//
// `regatta report`: formats, files and errors. report_browser_test shows its page in a browser.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../core/timeline/synthetic_trace.hpp"
#include "program.hpp"
#include "timeline/perfetto.hpp"

using namespace regatta::test;

namespace {

const std::string stored = REGATTA_SOURCE "/tests/core/page/";

} // namespace

TEST_CASE("a stored result is shown in every format, by name or by the ending of the file") {
  const temporary_folder s;
  s.write("r/result.json", read(stored + "example.json"));
  s.write("r/resolved-1.toml", "[model]\nplugin = \"mlp\"\n");
  CHECK(program(s, "report r").out.find("replicas identical") != std::string::npos);
  CHECK(program(s, "report r --format markdown").out.find("| allreduce |") != std::string::npos);
  CHECK(program(s, "report r/result.json -o x.csv").code == 0);
  const std::string csv = s.read("x.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 13); // headers, and three repeats of four cases
  CHECK(parsed(program(s, "report r --format json").out)["results"].size() == 4);
  const outcome page = program(s, "report r " + stored + "comm.json -o x.html --figures f");
  CHECK(page.code == 0);
  CHECK_MESSAGE(page.err.empty(), page.err);
  CHECK(s.read("x.html").starts_with("<!DOCTYPE html>"));
  CHECK(s.read("x.html").find("plugin = &quot;mlp&quot;") != std::string::npos); // the resolved TOML
  CHECK(s.read("f/r1-lost.svg").starts_with("<svg "));
  CHECK(s.read("f/r1-lost.csv").starts_with("row,"));
}

TEST_CASE("Markdown links to the figures that it writes, and shows a step of the trace beside the result") {
  const temporary_folder s;
  s.write("r/result.json", read(stored + "example.json"));
  s.write("r/traces/case-2-repeat-1.pftrace.gz", two_workers_trace());
  s.write("r/traces/case-4-repeat-1.pftrace.gz", "no trace");
  REQUIRE(program(s, "report r -o x.md --figures f").code == 0);
  const std::string text = s.read("x.md");
  std::size_t links = 0;
  for (std::size_t at = 0; (at = text.find("](<", at)) != std::string::npos; ++links) {
    const std::string file = text.substr(at + 3, text.find('>', at) - at - 3);
    CHECK_MESSAGE(s.read(file).starts_with("<svg "), file);
    at += 3;
  }
  CHECK(links >= 9);
  CHECK(text.find("](<f/timeline-2.svg>)") != std::string::npos);
  CHECK(text.find("The trace cannot be shown: ") != std::string::npos);
  CHECK(text.find("case-4-repeat-1.pftrace.gz: ") != std::string::npos);
  // The entries of a result that lacks cases do not tell the numbers in the names of traces.
  json lacking = parsed(read(stored + "example.json"));
  lacking["context"]["cases"] = 5;
  s.write("r/result.json", lacking.dump());
  CHECK(program(s, "report r --format markdown").out.find("This result has no trace.") != std::string::npos);
}

TEST_CASE("files without a result are refused with the reason") {
  const temporary_folder s;
  s.write("other.json", "{\"schema\": \"regatta.check/1\"}");
  s.write("half.json", "{\"schema\": ");
  s.write("empty/x", "");
  const std::pair<const char*, const char*> wrong[] = {
      {"none.json", "none.json: cannot be read"},
      {"empty", "empty/result.json: cannot be read"},
      {"other.json", "got \"regatta.check/1\""},
      {"half.json", "half.json: "},
  };
  for (const auto& [file, reason] : wrong) {
    const outcome o = program(s, std::string("report ") + file);
    CHECK(o.code == 2);
    CHECK_MESSAGE(o.err.find(reason) != std::string::npos, o.err);
  }
  json lacking = parsed(read(stored + "example.json"));
  lacking["results"][0]["loss"].erase("curve");
  lacking["results"][1]["efficiency"]["low"] = "none";
  s.write("lacking.json", lacking.dump());
  CHECK(program(s, "report lacking.json").err.find("lacking.json: expected a complete result") != std::string::npos);
  json changed = parsed(read(stored + "example.json"));
  changed["context"]["experiment"]["report"]["value"] = "{efficiency";
  s.write("changed.json", changed.dump());
  CHECK(program(s, "report changed.json").err.find("changed.json: [report]: expected a }") != std::string::npos);
  const std::string example = "report " + stored + "example.json ";
  CHECK(program(s, example + "-o x.pdf").code == 2);
  CHECK(program(s, example + "--format pdf").code == 2);
  CHECK(program(s, example + "--figures f").code == 2);
  CHECK(program(s, example + stored + "comm.json --format csv").code == 2);
  CHECK(program(s, example + "-o none/x.html").code == 1);
}
