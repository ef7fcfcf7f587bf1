// SPDX-License-Identifier: Apache-2.0
//
// Ranks and programs that are killed or interrupted: a run ends in order, names the rank and leaves no process.
#include "processes.hpp"
#include "program.hpp"

#include <chrono>
#include <random>
#include <vector>

#include <signal.h>

using namespace regatta::test;

namespace {

const std::string tiny = small_experiment(20);

// Starts the program on x.toml.
pid_t start(const temporary_folder& s) {
  return start(s, {REGATTA_PROGRAM, "run", "x.toml", "--out", "r", "--progress", "never"});
}

const std::string endless = tiny + "[sweep]\n\"measure.steps\" = [100000000]\n";

} // namespace

TEST_CASE("a rank killed at any moment ends its case, with its name, and leaves nothing") {
  std::mt19937 random(7);
  for (const char* parts : {"plugin = \"allreduce\"\n[transport]\nplugin = \"shm\"\n",
                            "plugin = \"allreduce\"\n[transport]\nplugin = \"tcp\"\n",
                            "plugin = \"sync_ps\"\n[transport]\nplugin = \"shm\"\n",
                            "plugin = \"sync_ps\"\n[transport]\nplugin = \"tcp\"\n"}) {
    CAPTURE(parts);
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << endless << "[cluster]\nworkers = 2\nservers = 1\n[strategy]\n" << parts;
    const pid_t run = start(s);
    std::vector<pid_t> ranks;
    REQUIRE(within(patience, [&] { return (ranks = children_of(run)).size() >= 2; }));
    // Anywhere from the rendezvous to some steps into the training.
    within(std::chrono::milliseconds(random() % 1500), [] { return false; });
    ranks = children_of(run);
    REQUIRE(ranks.size() >= 2);
    kill(ranks[random() % ranks.size()], SIGKILL);
    int status = 0;
    REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
    const std::string err = read(s.path / "err");
    CAPTURE(err);
    CHECK(err.find("killed by SIGKILL") != std::string::npos);
    for (const pid_t p : ranks) CHECK_FALSE(alive(p));
  }
}

TEST_CASE("a coordinator killed at any moment takes its ranks along") {
  std::mt19937 random(8);
  for (const char* transport : {"shm", "tcp"}) {
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << endless << "[cluster]\nworkers = 2\n[transport]\nplugin = \"" << transport
                                     << "\"\n";
    const pid_t run = start(s);
    std::vector<pid_t> ranks;
    REQUIRE(within(patience, [&] { return (ranks = children_of(run)).size() >= 2; }));
    within(std::chrono::milliseconds(random() % 1500), [] { return false; });
    ranks = children_of(run);
    kill(run, SIGKILL);
    int status = 0;
    waitpid(run, &status, 0);
    for (const pid_t p : ranks) CHECK(within(patience, [&] { return !alive(p); }));
  }
}

TEST_CASE("a signal before anything runs ends the program in order, and a second one always does") {
  const auto handles = [](pid_t p, int number) { // as soon as the program's own first lines have run
    std::error_code gone;
    if (fs::read_symlink("/proc/" + std::to_string(p) + "/exe", gone) != fs::canonical(REGATTA_PROGRAM)) return false;
    std::ifstream status("/proc/" + std::to_string(p) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
    return false;
  };
  for (const int number : {SIGTERM, SIGHUP}) {
    CAPTURE(number);
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << endless;
    signal(SIGHUP, SIG_DFL);
    const pid_t child = start(s);
    REQUIRE(within(patience, [&] { return handles(child, number); }));
    kill(child, number);
    int status = 0;
    REQUIRE(within(patience, [&] { return waitpid(child, &status, WNOHANG) == child; }));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
  }
  // Ranks that cannot end in order: the second signal kills them.
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << endless << "[cluster]\nworkers = 2\n";
  const pid_t run = start(s);
  std::vector<pid_t> ranks;
  REQUIRE(within(patience, [&] { return (ranks = children_of(run)).size() >= 2; }));
  for (const pid_t p : ranks) kill(p, SIGSTOP);
  kill(run, SIGTERM);
  kill(run, SIGHUP);
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  for (const pid_t p : ranks) CHECK(within(patience, [&] { return !alive(p); }));
}

TEST_CASE("Ctrl-C ends everything at once and keeps the finished cases") {
  const temporary_folder s;
  // The first case is short, the second endless: the signal comes once the first one's entry is in the file.
  std::ofstream(s.path / "x.toml") << tiny << "[sweep]\n\"measure.steps\" = [2, 100000000]\n";
  const pid_t child = start(s);
  const fs::path file = s.path / "r" / "result.json";
  const auto first_done = [&] {
    const json j = parsed(read(file), true);
    return j.is_object() && !j.at("results").empty() && j.at("results").at(0).at("status") == "ok";
  };
  while (!(fs::exists(file) && first_done())) REQUIRE(waitpid(child, nullptr, WNOHANG) == 0);
  kill(child, SIGINT);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  const json r = parsed(read(file)).at("results");
  REQUIRE(r.size() == 1); // no run of the second case has finished
  CHECK(r.at(0).at("status") == "ok");
  CHECK(read(s.path / "err") == "interrupted: 1 of 2 cases finished; go on with --out r --resume\n");
}
