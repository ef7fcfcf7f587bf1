// SPDX-License-Identifier: Apache-2.0
//
// Campaigns that repeat until their figures are as precise as asked, or the budget is spent.
#include "program.hpp"

#include <algorithm>

using namespace regatta::test;

namespace {

std::string experiment(const std::string& measure) {
  return R"(
[model]
plugin = "null"
[model.mlp]
hidden = [8]
[data]
source = "random"
[train]
batch = 8
kernels = "fixed"
[cluster]
workers = 2
[measure]
warmup = 0
steps = 200
)" + measure;
}

// Returns the kinds of the records in the folder.
std::vector<std::string> kinds(const temporary_folder& s) {
  std::vector<std::string> all;
  std::istringstream lines(read(s.path / "r" / "records.jsonl"));
  for (std::string line; std::getline(lines, line);) all.push_back(parsed(line, true).at("record").at("kind"));
  return all;
}

json only_entry(const temporary_folder& s) {
  return parsed(read(s.path / "r" / "result.json"), true).at("results").at(0);
}

} // namespace

TEST_CASE("repeats end when the figure is as precise as asked, and --resume has nothing left to do") {
  temporary_folder s;
  s.write("x.toml", experiment("precision = 0.5\nbudget = \"1h\"\n"));
  const outcome first = program(s, "run x.toml --out r --progress never");
  REQUIRE(first.code == 0);
  const json entry = only_entry(s);
  CHECK(entry.at("status") == "ok");
  const json sampling = entry.at("sampling");
  CHECK(sampling.at("ended") == "precise");
  CHECK(sampling.at("half_width").get<double>() <= 0.5);
  const auto n = entry.at("efficiency").at("n").get<std::size_t>();
  CHECK(n >= 6);
  CHECK(entry.at("repeats").size() == n);
  const std::string steps = std::to_string(200 * sampling.at("length").get<int>());
  CHECK(first.out.find(std::to_string(n) + " repeats of " + steps + " steps (wanted: ±50 % within 1h)") !=
        std::string::npos);
  const json e = entry.at("efficiency");
  const double width = e.at("high").get<double>() - e.at("low").get<double>();
  CHECK(sampling.at("half_width").get<double>() == doctest::Approx(width / 2 / e.at("median").get<double>()));
  const auto before = kinds(s);
  REQUIRE(program(s, "run x.toml --out r --resume --progress never").code == 0);
  CHECK(kinds(s) == before);
  CHECK(only_entry(s) == entry);
}

TEST_CASE("a spent budget ends the repeats with a warning, not with a failure") {
  temporary_folder s;
  s.write("x.toml", experiment("precision = 0.0001\nbudget = \"2s\"\n"));
  const outcome o = program(s, "run x.toml --out r --progress never");
  REQUIRE(o.code == 0);
  const json entry = only_entry(s);
  CHECK(entry.at("sampling").at("ended") == "budget");
  CHECK(o.out.find("precision: measure.budget of 2s was spent before the figure was known to 0.01 %") !=
        std::string::npos);
  const auto all = kinds(s);
  // Only whole rounds: the case, its baseline twice, and the contention control.
  CHECK(std::ranges::count(all, "run") == 4 * std::ranges::count(all, "machine"));
}

TEST_CASE("a dry run says how many repeats there are at least, and what ends them") {
  temporary_folder s;
  s.write("x.toml", experiment("precision = 0.02\nbudget = \"5min\"\n"));
  const outcome o = program(s, "run x.toml --dry-run");
  CHECK(o.code == 0);
  CHECK(o.out.find("That is 6 repeats; more follow until every figure is known to 2 %, for at most 5min.") !=
        std::string::npos);
  s.write("y.toml", experiment("precision = 0.02\nrepeats = 9\n"));
  CHECK(program(s, "run y.toml --dry-run").err.find("notice: measure.repeats has no effect") != std::string::npos);
}
