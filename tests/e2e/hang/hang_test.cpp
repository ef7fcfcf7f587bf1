// SPDX-License-Identifier: Apache-2.0
//
// Runs that would never end: whatever hangs, the case ends in time, its rank and the cause are named, and the next case
// runs. And ranks whose figures are in before they go wrong.
#include "processes.hpp"

#include <cctype>

using namespace regatta::test;

namespace {

const std::string two_workers = R"(
[model]
plugin = "hanging_model"
[cluster]
workers = 2
[train]
kernels = "fixed"
[measure]
warmup = 0
steps = 3
repeats = 1
baseline = false
timeout = "1s"
)";

// How many processes were started with this in their environment.
std::size_t processes_with(const std::string& token) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0])))
      count += read(entry.path() / "environ").find(token) != std::string::npos;
  return count;
}

struct ended {
  outcome program;
  json first, second; // the results of the two cases
};

// The first case of the sweep hangs, the second does not.
ended run_cases(const std::string& key, const std::string& hangs, const std::string& runs,
                const std::string& options = "") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << two_workers;
  ended e;
  const std::string token = "HANG_TEST=" + s.path.string();
  e.program = program(s,
                      "run x.toml --out r --progress never --format json --plugin-path " HANGING_PLUGINS " --sweep " +
                          key + "=" + hangs + "," + runs + " " + options,
                      token);
  CHECK(within(patience, [&] { return processes_with(token) == 0; }));
  INFO(e.program.err);
  const json all = parsed(e.program.out, true);
  REQUIRE(all.is_object());
  REQUIRE(all.at("results").size() == 2);
  e.first = all.at("results").at(0);
  e.second = all.at("results").at(1);
  return e;
}

// Names of `says` in the error, and of `dump` in the dump.
void hangs(const ended& e, const std::vector<std::string>& says, const std::vector<std::string>& dump) {
  INFO(e.program.err);
  CHECK(e.program.code == 1);
  CHECK(e.first.at("status") == "failed");
  CHECK(e.second.at("status") == "ok");
  const std::string error = e.first.at("error"), lines = e.first.value("dump", "");
  for (const std::string& part : says) {
    CAPTURE(part);
    CHECK(error.find(part) != std::string::npos);
  }
  for (const std::string& part : dump) {
    CAPTURE(part);
    CHECK(lines.find(part) != std::string::npos);
    CHECK(e.program.err.find(part) != std::string::npos);
  }
}

} // namespace

TEST_CASE("a model that does not return ends its case, wherever that is") {
  const std::string rank = "rank 1 (worker 1, pid ", other = "rank 0 (worker 0, pid ";
  struct place {
    const char *at, *loops, *operation;
    bool alone; // rank 0 has given its result
  };
  for (const place p :
       {place{"init", "false", "initialising the weights", false},
        place{"bind", "false", "binding the model to its weights", false},
        place{"step", "false", "step 1, forward pass", false}, place{"step", "true", "step 1, forward pass", false},
        place{"destructor", "false", "destroying the plugins' objects", true}}) {
    CAPTURE(p.at);
    CAPTURE(p.loops);
    hangs(run_cases("model.at", p.at, "never", std::string("--set model.loops=") + p.loops),
          {rank, "no progress for ", p.operation, "the call does not return: ", "hanging.so"},
          {rank, "main thread:", "hanging.so", p.alone ? rank : other});
  }
}

TEST_CASE("a step that waits within itself: the dump names the tensors without gradients") {
  hangs(run_cases("model.at", "need", "never", "--set transport.plugin=tcp"), {"rank 1 (", "step 1, backward pass"},
        {"ready() was not called for weight", "rank 0 (worker 0, pid ", "open: receive from rank 1, lane 0, "});
}

TEST_CASE("a receive that nobody serves") {
  hangs(run_cases("strategy.at", "receive", "never", "--set strategy.plugin=hanging_strategy"),
        {"rank 1 (", "step 1, exchanging gradients and weights",
         "waits for its peers; first: receive from rank 0, lane 1, "},
        {"open: receive from rank 0, lane 1, ", "rank 0 (worker 0, pid ", "waits for the other ranks"});
}

TEST_CASE("a strategy that does not return") {
  hangs(run_cases("strategy.at", "return", "never", "--set strategy.plugin=hanging_strategy"),
        {"rank 1 (", "step 1, exchanging gradients and weights", "does not return: hanging.so"},
        {"rank 0 (worker 0, pid ", "waits for the other ranks"});
}

TEST_CASE("a strategy that does not return when an operation ends") {
  hangs(run_cases("strategy.at", "poll", "never", "--set strategy.plugin=hanging_strategy"),
        {"rank 1 (", "step 1, exchanging gradients and weights", "does not return: hanging.so"},
        {"rank 0 (worker 0, pid ", "waits for the other ranks"});
}

TEST_CASE("a strategy's own function that does not return, beside the loop") {
  const ended e = run_cases("strategy.at", "function", "never", "--set strategy.plugin=hanging_strategy");
  hangs(e, {"rank 1 (", "step 1, exchanging gradients and weights", "a function of the strategy's own"},
        {"open: a function of the strategy's own", "rank 0 (worker 0, pid ", "waits for the other ranks"});
  CHECK(e.program.err.find("own, 0 bytes") == std::string::npos); // a function moves none
}

TEST_CASE("a transport that never takes a receive, or a send") {
  for (const auto& [at, open] : {std::pair{"receive", "receive from rank "}, std::pair{"send", "send to rank "}}) {
    CAPTURE(at);
    hangs(run_cases("transport.at", at, "never", "--set transport.plugin=hanging_transport"),
          {"no progress for ", "RG_AGAIN"}, {std::string("open: ") + open, "the transport is full (RG_AGAIN)"});
  }
}

TEST_CASE("a transport whose poll does not return, or reports nothing") {
  const std::string options = "--set transport.plugin=hanging_transport";
  hangs(run_cases("transport.at", "poll", "never", options),
        {"rank 1 (", "no progress for ", "does not return: hanging.so"}, {"rank 0 (worker 0, pid "});
  hangs(run_cases("transport.at", "report", "never", options), {"no progress for ", "waits for its peers; first: "},
        {"rank 1 (worker 1, pid ", "rank 0 (worker 0, pid "});
}

TEST_CASE("a transport that gives up its close fails the case: its last messages may be lost") {
  hangs(run_cases("transport.at", "close", "never", "--set transport.plugin=hanging_transport"),
        {"rank 1 (worker 1, pid ", "transport hanging_transport: rank 0 has not taken all that was sent"}, {});
}

TEST_CASE("comm: a transport that stands still is named with its size, and the next one is measured") {
  for (const auto& [at, says] :
       {std::pair{"receive", "waits for its peers; first: receive from rank "}, std::pair{"send", "(RG_AGAIN)"},
        std::pair{"report", "waits for its peers; first: "}, std::pair{"poll", "does not return: hanging.so"}}) {
    CAPTURE(at);
    const temporary_folder s;
    const std::string token = "HANG_TEST=" + s.path.string();
    const outcome o = program(
        s,
        std::string("comm --transport hanging_transport,shm --op send --min 8B --max 8B --seconds 0.002 "
                    "--timeout 1s --format json --plugin-path " HANGING_PLUGINS " --set hanging_transport.at=") +
            at,
        token);
    CHECK(within(patience, [&] { return processes_with(token) == 0; }));
    INFO(o.err);
    CHECK(o.code == 1);
    CHECK(o.err.find("the run makes no progress (--timeout); state of each rank:") != std::string::npos);
    const json all = parsed(o.out);
    REQUIRE(all.at("results").size() == 1);
    CHECK(all.at("results").at(0).at("transport") == "shm");
    REQUIRE(all.at("failures").size() == 1);
    const json& failed = all.at("failures").at(0);
    CHECK(failed.at("transport") == "hanging_transport");
    CHECK(failed.at("ranks") == 2);
    const std::string error = failed.at("error");
    CHECK(o.err.find(error) != std::string::npos);
    for (const std::string part :
         {"hanging_transport between 2 ranks: rank ", "no progress for ", "measuring send of 8B", says}) {
      CAPTURE(part);
      CHECK(error.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("steps of three seconds are no standstill") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << two_workers;
  const outcome o = program(s, "run x.toml --out r --progress never --plugin-path " HANGING_PLUGINS
                               " --set model.at=slow --set measure.timeout=auto --set measure.steps=2");
  INFO(o.err);
  CHECK(o.code == 0);
}

TEST_CASE("figures that are in stay in when a rank then hangs, crashes or exits") {
  for (const auto& [at, says] : {std::pair{"exit_hang", "of its result and was killed"},
                                 std::pair{"exit_crash", "killed by SIGSEGV after its result"},
                                 std::pair{"exit_code", "exited with code 3 after its result"}}) {
    CAPTURE(at);
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << two_workers;
    const outcome o =
        program(s,
                std::string("run x.toml --out r --progress never --format json --plugin-path " HANGING_PLUGINS
                            " --set model.at=") +
                    at,
                "ASAN_OPTIONS=detect_leaks=0:handle_segv=0 TSAN_OPTIONS=handle_segv=0"); // else they exit with a code
    INFO(o.err);
    CHECK(o.code == 0);
    CHECK(o.err.find("rank 1 (worker 1, pid ") != std::string::npos);
    CHECK(o.err.find(says) != std::string::npos);
    const json r = parsed(o.out).at("results").at(0);
    CHECK(r.at("status") == "ok");
    CHECK(r.at("warnings").dump().find(says) != std::string::npos);
  }
}

TEST_CASE("a rank that is stopped before it connects is found") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << two_workers;
  const pid_t run = start(s, {REGATTA_PROGRAM, "run", "x.toml", "--out", "r", "--progress", "never", "--plugin-path",
                              HANGING_PLUGINS, "--set", "measure.steps=1000000", "--set", "measure.timeout=auto"});
  std::vector<pid_t> ranks;
  REQUIRE(within(patience, [&] { // plugins are tried in processes, too
    ranks = children_of(run);
    std::erase_if(ranks, [](pid_t p) {
      return read("/proc/" + std::to_string(p) + "/cmdline").find("--connect") == std::string::npos;
    });
    return !ranks.empty();
  }));
  const pid_t stopped = ranks.back();
  kill(stopped, SIGSTOP);
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
  const std::string err = read(s.path / "err");
  CAPTURE(err);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(err.find("pid " + std::to_string(stopped) + "): stopped by a signal for 2.") != std::string::npos);
  CHECK_FALSE(alive(stopped));
}
