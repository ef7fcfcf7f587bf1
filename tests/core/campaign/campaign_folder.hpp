// SPDX-License-Identifier: Apache-2.0
//
// Campaigns of the program, and what their folder, named r, holds.
#pragma once

#include "processes.hpp"
#include "program.hpp"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace regatta::test {

inline const std::string tiny = R"(
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
steps = 20
)";

// Two cases of three repeats that share baselines and control: 15 runs.
inline const std::string shared = tiny + R"(
repeats = 3
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)";

inline std::vector<std::string> command(const std::string& options = "") {
  std::vector<std::string> words = {REGATTA_PROGRAM, "run", "x.toml", "--out", "r", "--progress", "never"};
  std::istringstream in(options);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The records of a kind that are whole.
inline std::vector<json> records(const temporary_folder& s, const std::string& kind = "run") {
  std::vector<json> found;
  std::istringstream lines(read(s.path / "r" / "records.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json j = parsed(line, true);
    if (j.is_object() && j.at("record").at("kind") == kind) found.push_back(j.at("record"));
  }
  return found;
}

inline json result(const temporary_folder& s) {
  return parsed(read(s.path / "r" / "result.json"), true);
}

inline bool has_result(const temporary_folder& s) {
  return result(s).is_object();
}

// Until the program has written so many runs and a result. Returns false where it ended before.
inline bool wait_for_runs(const temporary_folder& s, pid_t run, std::size_t count) {
  const auto there = [&] { return records(s).size() >= count && has_result(s); };
  REQUIRE(within(patience, [&] { return there() || !alive(run); }));
  return there();
}

inline int code_of(pid_t run) {
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// How often each round has runs of each role.
inline std::map<int, std::map<std::string, int>> roles_by_round(const temporary_folder& s) {
  std::map<int, std::map<std::string, int>> count;
  for (const json& r : records(s)) ++count[r.at("round").get<int>()][r.at("role")];
  return count;
}

// How often the cases' own runs are there with all runs that they are compared with, by case and repeat.
inline std::map<std::pair<int, int>, int> runs_of_cases(const temporary_folder& s) {
  std::map<std::pair<int, int>, int> count;
  auto rounds = roles_by_round(s);
  for (const json& r : records(s)) {
    if (r.at("role") != "case") continue;
    auto& roles = rounds[r.at("round").get<int>()];
    if (r.at("needs").empty() || (roles["baseline"] == 2 && roles["contention"] == 1))
      ++count[{r.at("index").get<int>(), r.at("repeat").get<int>()}];
  }
  return count;
}

inline void check_whole(const temporary_folder& s, int cases, int repeats) {
  const auto runs = runs_of_cases(s);
  CHECK(runs.size() == static_cast<std::size_t>(cases * repeats));
  for (const auto& [which, times] : runs) CHECK(times == 1);
  const json r = result(s);
  REQUIRE(r.is_object());
  REQUIRE(r.at("results").size() == static_cast<std::size_t>(cases));
  for (const json& e : r.at("results")) {
    CHECK(e.at("status") == "ok");
    CHECK(e.at("error").is_null());
    CHECK(e.at("samples_per_second").at("repeats").size() == static_cast<std::size_t>(repeats));
  }
}

inline std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

} // namespace regatta::test
