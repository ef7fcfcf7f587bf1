// SPDX-License-Identifier: Apache-2.0
//
// The files of a campaign, in every way in which it can end: no measurement is lost, repeated or mixed up.
#include "processes.hpp"
#include "program.hpp"
#include "registry/sha256.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <sys/mount.h>

using namespace regatta::test;

namespace {

const std::string tiny = R"(
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
const std::string shared = tiny + R"(
repeats = 3
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)";

std::vector<std::string> command(const std::string& options = "") {
  std::vector<std::string> words = {REGATTA_PROGRAM, "run", "x.toml", "--out", "r", "--progress", "never"};
  std::istringstream in(options);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The records of a kind that are whole.
std::vector<json> records(const temporary_folder& s, const std::string& kind = "run") {
  std::vector<json> found;
  std::istringstream lines(read(s.path / "r" / "records.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json j = parsed(line, true);
    if (j.is_object() && j.at("record").at("kind") == kind) found.push_back(j.at("record"));
  }
  return found;
}

json result(const temporary_folder& s) {
  return parsed(read(s.path / "r" / "result.json"), true);
}

bool has_result(const temporary_folder& s) {
  return result(s).is_object();
}

// Until the program has written so many runs and a result. Returns false where it ended before.
bool wait_for_runs(const temporary_folder& s, pid_t run, std::size_t count) {
  const auto there = [&] { return records(s).size() >= count && has_result(s); };
  REQUIRE(within(patience, [&] { return there() || !alive(run); }));
  return there();
}

int code_of(pid_t run) {
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// How often each round has runs of each role.
std::map<int, std::map<std::string, int>> roles_by_round(const temporary_folder& s) {
  std::map<int, std::map<std::string, int>> count;
  for (const json& r : records(s)) ++count[r.at("round").get<int>()][r.at("role")];
  return count;
}

// How often the cases' own runs are there with all runs that they are compared with, by case and repeat.
std::map<std::pair<int, int>, int> runs_of_cases(const temporary_folder& s) {
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

void check_whole(const temporary_folder& s, int cases, int repeats) {
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

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

} // namespace

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

namespace {

// Starts the program with these descriptors as standard output and standard error.
pid_t start_with(const temporary_folder& s, const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  signal(SIGPIPE, SIG_DFL);
  if (chdir(s.path.c_str()) != 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
  execv(arguments[0], arguments.data());
  _exit(99);
}

// Three cases, of which the first is skipped, with its reason on standard error.
const std::string skipping =
    tiny + "baseline = false\nrepeats = 1\n[sweep]\n\"transport.plugin\" = [\"null\", \"shm\", \"tcp\"]\n";

void check_others_ran(const temporary_folder& s) {
  const json r = result(s);
  REQUIRE(r.is_object());
  REQUIRE(r.at("results").size() == 3);
  CHECK(r.at("results").at(0).at("status") == "skipped");
  CHECK(r.at("results").at(1).at("status") == "ok");
  CHECK(r.at("results").at(2).at("status") == "ok");
}

} // namespace

TEST_CASE("standard error that cannot be written costs no run and no exit code") {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  int broken[2];
  REQUIRE(pipe2(broken, O_CLOEXEC) == 0);
  close(broken[0]); // there is no reader any more
  for (const int err : {full, broken[1]}) {
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << skipping;
    std::vector<std::string> words = command();
    words.back() = "always";
    CHECK(code_of(start_with(s, words, null, err)) == 0);
    check_others_ran(s);
    CHECK(code_of(start_with(s, words, null, err)) == 2); // the folder holds a campaign
    CHECK(code_of(start_with(s, {REGATTA_PROGRAM, "fly"}, null, err)) == 2);
  }
  for (const int fd : {null, full, broken[1]}) close(fd);
}

TEST_CASE("standard output that is lost is a failure, and all cases ran") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << skipping;
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC),
            err = open((s.path / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (const char* format : {"csv", "json", "console"}) {
    CAPTURE(format);
    fs::remove_all(s.path / "r");
    REQUIRE(ftruncate(err, 0) == 0);
    lseek(err, 0, SEEK_SET);
    CHECK(code_of(start_with(s, command(std::string("--format ") + format), full, err)) == 1);
    CHECK(read(s.path / "err").find("standard output could not be written: No space left on device") !=
          std::string::npos);
    check_others_ran(s);
  }
  close(full);
  close(err);
}

namespace {

const std::string four_cases =
    tiny + "baseline = false\nrepeats = 1\n[sweep]\n\"measure.steps\" = [500, 501, 502, 503]\n";

std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

} // namespace

TEST_CASE("a folder that is removed during a campaign is made again, with all results") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << four_cases;
  const pid_t run = start(s, command());
  REQUIRE(wait_for_runs(s, run, 1));
  fs::rename(s.path / "r", s.path / "gone"); // at once, as remove_all() is not
  fs::remove_all(s.path / "gone");
  CHECK(code_of(run) == 0);
  INFO(read(s.path / "err"));
  check_whole(s, 4, 1);
  CHECK(fs::exists(s.path / "r" / "resolved-4.toml"));
}

TEST_CASE("a result that cannot be written is said once; the campaign runs to its end and fails there") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << four_cases;
  const int out = open((s.path / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
            err = open((s.path / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const pid_t run = start_with(s, command(), out, err);
  REQUIRE(wait_for_runs(s, run, 1));
  const fs::path file = s.path / "r" / "result.json";
  REQUIRE(within(patience, [&] { // the program may just replace it
    std::error_code ignored;
    fs::remove(file, ignored);
    return fs::create_directory(file, ignored);
  }));
  CHECK(code_of(run) == 1);
  const std::string said = read(s.path / "err");
  INFO(said);
  CHECK(times_in(said, "the campaign goes on") == 1);
  CHECK(said.find("results are missing on the disk") != std::string::npos);
  CHECK(times_in(read(s.path / "out"), "samples/s") >= 1);
  CHECK(times_in(read(s.path / "out"), "failed") == 0);
  CHECK(runs_of_cases(s).size() == 4); // the records were no matter
  fs::remove_all(file);
  CHECK(program(s, "run x.toml --out r --progress never --resume").code == 0);
  check_whole(s, 4, 1);
}

TEST_CASE("a full disk is said, and the campaign runs to its end") {
  const temporary_folder s;
  const fs::path disk = s.path / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=320k") != 0) {
    MESSAGE("no tmpfs can be mounted here (it takes root): report_file_test alone looks at full disks");
    return;
  }
  {
    std::ofstream(s.path / "x.toml") << four_cases;
    const outcome o = program(s, "run x.toml --out disk/r --progress never");
    INFO(o.err);
    CHECK(o.code == 1);
    CHECK(times_in(o.err, "No space left on device; the campaign goes on") == 1);
    CHECK(times_in(o.out, "shm") >= 1);
    CHECK(o.out.find("failed") == std::string::npos);
    const json r = parsed(read(disk / "r" / "result.json"), true);
    CHECK(r.is_object()); // the last one that had room
  }
  CHECK(umount(disk.c_str()) == 0);
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
