// SPDX-License-Identifier: Apache-2.0
//
// The files of a campaign, in every way in which it can end: no measurement is lost, repeated or mixed up.
#include "campaign_folder.hpp"
#include "registry/sha256.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <tuple>

using namespace regatta::test;

TEST_CASE("every run is on disk when it has finished, and --resume runs only what is missing, whatever ended it") {
  for (const auto& [signal, runs] : {std::pair{SIGKILL, 1}, {SIGKILL, 5}, {SIGHUP, 4}, {SIGINT, 6}}) {
    CAPTURE(signal);
    CAPTURE(runs);
    std::optional<temporary_folder> s;
    std::string options;
    // Where this process gets no core in time the campaign is over before the signal: then its runs must be longer.
    int code = 0;
    for (int steps = 20; code == 0 && steps < 100000; steps *= 8) {
      s.emplace();
      std::ofstream(s->path / "x.toml") << shared;
      options = "--set measure.steps=" + std::to_string(steps);
      const pid_t run = start(*s, command(options));
      wait_for_runs(*s, run, static_cast<std::size_t>(runs));
      kill(run, signal);
      code = code_of(run);
    }
    REQUIRE(code != 0);
    if (signal == SIGINT) {
      CHECK(code == 130);
      CHECK(read(s->path / "err").find(" of 2 cases finished; go on with --out r --resume\n") != std::string::npos);
    }
    const auto before = runs_of_cases(*s);
    REQUIRE(before.size() < 6);
    const json partial = result(*s);
    REQUIRE(partial.is_object());
    CHECK(partial.at("results").size() <= before.size());
    for (const json& e : partial.at("results")) {
      const std::size_t repeats = e.at("repeats").size();
      CHECK(e.at("status") == (repeats == 3 ? "ok" : "partial"));
      if (repeats < 3) CHECK(e.at("error") == std::to_string(repeats) + " of 3 repeats");
      CHECK(e.at("samples_per_second").at("median").is_number());
    }
    const json first = records(*s).front();
    const outcome resumed = program(*s, "run x.toml --out r --progress never --resume " + options);
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_whole(*s, 2, 3);
    CHECK(records(*s).front() == first);
    for (const json& r : records(*s)) {
      CHECK(r.at("round") <= r.at("number"));
      if (r.at("role") == "case") CHECK(r.at("needs") == json({"baseline", "contention"}));
    }
    const json document = result(*s);
    for (const json& e : document.at("results"))
      for (const json& repeat : e.at("repeats"))
        for (const char* role : {"case", "baseline", "baseline_again", "contention"})
          CHECK(repeat.at(role).is_object());
    CHECK(names_in(s->path / "r") == std::set<std::string>{"as-written.toml", "records.jsonl", "resolved-1.toml",
                                                           "resolved-2.toml", "resolved-all.toml", "result.json"});
    CHECK(program(*s, "run x.toml --out r --progress never --resume " + options).code == 0); // nothing is left to do
    CHECK(result(*s) == document);
    check_whole(*s, 2, 3);
  }
}

TEST_CASE("each round has the baseline twice, in an order that the seed decides") {
  const auto order = [](const std::string& options) {
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << shared;
    REQUIRE(program(s, "run x.toml --out r --progress never " + options).code == 0);
    for (const auto& [round, roles] : roles_by_round(s))
      CHECK(roles == std::map<std::string, int>{{"baseline", 2}, {"case", 2}, {"contention", 1}});
    std::vector<std::string> by_round(3);
    for (const json& r : records(s))
      by_round.at(r.at("repeat")) += r.at("role").get<std::string>() + r.at("case").dump() + " ";
    std::set<int> rounds;
    json rates = json::array();
    for (const json& r : records(s, "machine")) {
      rounds.insert(r.at("round").get<int>());
      rates.push_back(r.at("machine"));
      if (const json& machine = r.at("machine"); !machine.is_null()) {
        CHECK(machine.at("fma").get<double>() > 0);
        CHECK(machine.at("copy").get<double>() > 0);
      }
    }
    CHECK(rounds.size() == 3);
    const json document = result(s);
    CHECK(document.at("context").at("sampling").get<std::string>().starts_with("a repeat is disturbed if"));
    for (const json& e : document.at("results")) {
      CHECK(e.at("noise").at("n") == 3);
      CHECK(e.at("noise").at("median").get<double>() > 0);
      CHECK(e.at("flops_per_sample").is_null()); // the model declares none
      for (std::size_t n = 0; n < 3; ++n) {
        CHECK(e.at("repeats").at(n).at("machine") == rates.at(n));
        CHECK(e.at("repeats").at(n).at("round") == *std::next(rounds.begin(), static_cast<std::ptrdiff_t>(n)));
      }
    }
    return by_round;
  };
  const auto first = order("");
  CHECK(std::set<std::string>(first.begin(), first.end()).size() > 1); // the rounds differ
  CHECK(order("") == first);
  CHECK(order("--set experiment.seed=2") != first);
}

TEST_CASE("a repeat that fails costs neither the repeats before it nor a run of them again") {
  std::optional<temporary_folder> s;
  std::string options;
  int code = 0;
  for (int steps = 1000; code == 0 && steps < 1000000;
       steps *= 8) { // until a rank is killed before all repeats are over
    s.emplace();
    std::ofstream(s->path / "x.toml") << tiny << "baseline = false\nrepeats = 3\n";
    options = "--set measure.steps=" + std::to_string(steps);
    const pid_t run = start(*s, command(options));
    REQUIRE(wait_for_runs(*s, run, 1));
    std::vector<pid_t> ranks; // of the next run
    within(patience, [&] { return (ranks = children_of(run)).size() == 2 || records(*s).size() == 3; });
    if (ranks.size() == 2) kill(ranks[0], SIGKILL);
    code = code_of(run);
  }
  REQUIRE(code == 1);
  const json failed = result(*s).at("results").at(0);
  CHECK(failed.at("status") == "failed");
  CHECK(failed.at("error").get<std::string>().find("killed by SIGKILL") != std::string::npos);
  CHECK(failed.at("samples_per_second").at("repeats").size() == runs_of_cases(*s).size());
  CHECK(runs_of_cases(*s).size() < 3);
  const outcome resumed = program(*s, "run x.toml --out r --progress never --resume " + options);
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_whole(*s, 1, 3);
}

TEST_CASE("damaged and torn records are said, and their runs are run again") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << shared;
  REQUIRE(program(s, "run x.toml --out r --progress never").code == 0);
  check_whole(s, 2, 3);
  const fs::path file = s.path / "r" / "records.jsonl";
  const std::string text = read(file);
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  REQUIRE(lines.size() == 19); // and the campaign's, and three of the machine
  // A baseline of the first repeat, without which two runs of cases have no pair; and half of the last record.
  const auto baseline = std::ranges::find_if(
      lines, [](const std::string& line) { return parsed(line).at("record").value("role", "") == "baseline"; });
  REQUIRE(baseline != lines.end());
  (*baseline)[300] ^= 1;
  const std::string place = "records.jsonl:" + std::to_string(baseline - lines.begin() + 1);
  lines[18].resize(lines[18].size() / 2);
  std::string damaged;
  for (const std::string& line : lines) damaged += line;
  std::ofstream(file) << damaged;
  const outcome resumed = program(s, "run x.toml --out r --progress never --resume");
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(resumed.err.find(place + ": this record is damaged") != std::string::npos);
  CHECK(resumed.err.find("records.jsonl:19: the last record is incomplete; it is ignored") != std::string::npos);
  const json r = result(s);
  for (const json& e : r.at("results")) {
    CHECK(e.at("status") == "ok");
    CHECK(e.at("repeats").size() == 3);
    for (const json& repeat : e.at("repeats")) CHECK(repeat.at("baseline_again").is_object());
  }
  CHECK(roles_by_round(s).size() == 5); // the rounds of the two incomplete repeats ran again
  // Without the campaign's record it is unknown what was measured.
  const std::string beheaded = read(file).substr(10); // before the file is opened for writing
  std::ofstream(file) << beheaded;
  const outcome headless = program(s, "run x.toml --out r --progress never --resume");
  CHECK(headless.code == 2);
  CHECK(headless.err.find("cannot resume: its first record is damaged") != std::string::npos);
}

namespace {

// The line of a record with another value at `pointer`; discarded: without it. Its checksum is right.
std::string changed(const std::string& line, const std::string& pointer, const json& value) {
  json record = parsed(line).at("record");
  const json::json_pointer at(pointer);
  if (value.is_discarded())
    record[at.parent_pointer()].erase(at.back());
  else
    record[at] = value;
  const std::string text = record.dump();
  regatta::sha256 sum;
  sum.add(text);
  return "{\"sha256\":\"" + sum.hex() + "\",\"record\":" + text + "}\n";
}

} // namespace

TEST_CASE("records whose members are missing or of another type are named by line; their runs run again") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny + "repeats = 1\nbaseline = false\n";
  REQUIRE(program(s, "run x.toml --out r --progress never").code == 0);
  const fs::path file = s.path / "r" / "records.jsonl";
  std::istringstream in(read(file));
  std::string context, machine, run;
  std::getline(in, context);
  std::getline(in, machine);
  std::getline(in, run);
  REQUIRE(parsed(run).at("record").at("kind") == "run");
  const auto resumed = [&](const std::string& text) {
    std::ofstream(file) << text;
    const outcome o = program(s, "run x.toml --out r --progress never --resume");
    CHECK(o.err.find("json.exception") == std::string::npos);
    return o;
  };
  const json gone(json::value_t::discarded);

  // Of a run: the record counts for nothing.
  const std::vector<std::tuple<std::string, json, std::string>> runs = {
      {"/kind", 1.5, "\"kind\" has a value of the wrong type, number"},
      {"/number", -1, "\"number\" has a value of the wrong type, number"},
      {"/number", UINT64_MAX, "no run has number 18446744073709551615"},
      {"/repeat", 7, "the case has no repeat 7"},
      {"/round", 2, "run 1 belongs to no round 2"},
      {"/facts/data", gone, "\"data\" is missing"},
      {"/ranks/0/gpu", json::object(), "\"name\" is missing"},
      {"/ranks/0/steps/begin/0", 1e30, "\"begin\" has a value of the wrong type, array"},
      {"/ranks/0/strategy/by_step", nullptr, "\"by_step\" has a value of the wrong type, null"}};
  for (const auto& [pointer, value, said] : runs) {
    CAPTURE(pointer);
    const outcome o = resumed(context + "\n" + changed(run, pointer, value));
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(o.err.find("warning: r/records.jsonl:2: this record is damaged (" + said + "); it is ignored") == 0);
    const std::string now = read(file);
    CHECK(std::count(now.begin(), now.end(), '\n') == 4); // and records of the round that ran again
    CHECK(result(s).at("results").at(0).at("status") == "ok");
  }

  // The record of the campaign: without it, it is unknown what was measured.
  const std::vector<std::pair<std::string, json>> contexts = {
      {"/context/hosts", {{"a", 1}}}, {"/context/plugins", gone}, {"/context/date", 5}, {"/context", nullptr}};
  for (const auto& [pointer, value] : contexts) {
    CAPTURE(pointer);
    const outcome o = resumed(changed(context, pointer, value) + run + "\n");
    INFO(o.err);
    CHECK(o.code == 2);
    CHECK(o.err.find("r/records.jsonl:1: cannot resume: ") != std::string::npos);
    CHECK(o.err.find("choose another folder with --out") != std::string::npos);
  }
}

TEST_CASE("campaigns that start at once have a folder each, and each folder what belongs together") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny << "baseline = false\nrepeats = 1\n";
  std::vector<pid_t> runs;
  for (const char* steps : {"10", "20", "30", "40"})
    runs.push_back(start(
        s, {REGATTA_PROGRAM, "run", "x.toml", "--progress", "never", "--set", std::string("measure.steps=") + steps}));
  for (const pid_t run : runs) CHECK(code_of(run) == 0);
  std::set<int> steps;
  for (const auto& folder : fs::directory_iterator(s.path / "results")) {
    const json r = parsed(read(folder.path() / "result.json"));
    const int asked = r.at("context").at("experiment").at("measure").at("steps");
    steps.insert(asked);
    CHECK(r.at("results").at(0).at("status") == "ok");
    CHECK(r.at("results").at(0).at("loss").at("curve").size() == static_cast<std::size_t>(asked));
    CHECK(read(folder.path() / "resolved.toml").find("steps = " + std::to_string(asked)) != std::string::npos);
  }
  CHECK(steps == std::set<int>{10, 20, 30, 40});
}

TEST_CASE("a folder that a campaign writes is refused to every other one") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny << "baseline = false\nrepeats = 1\n";
  const pid_t run = start(s, command("--sweep measure.steps=3,100000000"));
  REQUIRE(wait_for_runs(s, run, 1));
  for (const char* option : {"", " --resume"}) {
    const outcome second = program(s, std::string("run x.toml --out r --progress never") + option);
    CHECK(second.code == 2);
    CHECK(second.err ==
          "r: is being written by process " + std::to_string(run) + "; choose another folder with --out\n");
  }
  kill(run, SIGINT);
  CHECK(code_of(run) == 130);
  const json r = result(s);
  REQUIRE(r.is_object());
  CHECK(r.at("results").at(0).at("status") == "ok");
  CHECK(runs_of_cases(s).size() == 1);
  const outcome later = program(s, "run x.toml --out r --progress never");
  CHECK(later.code == 2);
  CHECK(later.err.find("this folder already holds a campaign") != std::string::npos);
}

TEST_CASE("a plugin that changes during a campaign fails the runs that would open it, and --resume names it") {
  const temporary_folder s;
  fs::create_directory(s.path / "P");
  const fs::path plugin = s.path / "P" / "mlp.so";
  fs::copy_file(fs::path(REGATTA_PLUGINS) / "mlp.so", plugin);
  std::ofstream(s.path / "x.toml") << tiny << R"(
baseline = false
repeats = 1
[sweep]
"model.plugin" = ["mlp", "null"]
"measure.steps" = [500, 501, 502, 503, 504, 505]
)";
  const pid_t run = start(s, command("--plugin-path P"));
  REQUIRE(wait_for_runs(s, run, 1));
  fs::copy_file(plugin, s.path / "new");
  std::ofstream(s.path / "new", std::ios::app) << '\0'; // another file that works as well
  fs::rename(s.path / "new", plugin);
  CHECK(code_of(run) == 1);
  const json r = result(s).at("results");
  REQUIRE(r.size() == 12);
  CHECK(r.at(0).at("status") == "ok");
  CHECK(r.at(5).at("status") == "failed");
  CHECK(r.at(5).at("error").get<std::string>().find("model mlp: " + plugin.string() +
                                                    " changed since the campaign began") == 0);
  for (std::size_t i = 6; i < 12; ++i) CHECK(r.at(i).at("status") == "ok");
  const std::string sum = records(s).front().at("plugins").at(plugin.string());
  const json document = result(s); // outlives the loop over a part of it
  for (const json& p : document.at("context").at("plugins"))
    if (p.at("id") == "mlp") CHECK(p.at("sha256") == sum);
  const outcome resumed = program(s, "run x.toml --out r --progress never --plugin-path P --resume");
  CHECK(resumed.code == 2);
  CHECK(resumed.err.find("cannot resume: model mlp has another binary") != std::string::npos);
  // A copy with the same contents is the same plugin.
  fs::copy_file(fs::path(REGATTA_PLUGINS) / "mlp.so", plugin, fs::copy_options::overwrite_existing);
  CHECK(program(s, "run x.toml --out r --progress never --plugin-path P --resume").code == 0);
  check_whole(s, 12, 1);
}

TEST_CASE("other data under the same path are not mixed into a campaign that is resumed") {
  const temporary_folder s;
  fs::create_directory(s.path / "data");
  for (int i = 0; i < 200; ++i)
    std::ofstream(s.path / "data" / "text.txt", std::ios::app) << "one two three four five six seven\n";
  std::ofstream(s.path / "x.toml") << R"(
[model]
plugin = "word2vec"
[data]
source = "dataset"
format = "words"
path = "data"
[train]
batch = 8
[cluster]
workers = 1
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 0
steps = 3
repeats = 1
baseline = false
)";
  const outcome first = program(s, "run x.toml --out r --progress never");
  INFO(first.err);
  REQUIRE(first.code == 0);
  const json set = result(s).at("context").at("data").at(0);
  CHECK(set.at("path") == (s.path / "data").string());
  CHECK(set.at("files") == 1);
  CHECK(program(s, "run x.toml --out r --progress never --resume").code == 0); // with its vocabulary now beside it
  std::ofstream(s.path / "data" / "text.txt", std::ios::app) << "eight\n";
  const outcome other = program(s, "run x.toml --out r --progress never --resume");
  CHECK(other.code == 2);
  CHECK(other.err.find("cannot resume: the data of " + (s.path / "data").string() + " changed") != std::string::npos);
}
