// SPDX-License-Identifier: Apache-2.0
//
// Ranks in real processes: what they can do together and every way in which they can end. No run leaves a process, a
// port or a file behind.
#include "launch/launch.hpp"

#include "base/cpu_mask.hpp"
#include "launch/cpus.hpp"
#include "launch_fixture.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;

TEST_CASE("ranks exchange, meet, sum, log and give results") {
  for (const std::size_t n : {1, 2, 8}) {
    CAPTURE(n);
    const auto o = run(
        plan_of(n, {step("barrier", {{"name", "start"}}), step("exchange", {{"bytes", 0}}),
                    step("exchange", {{"bytes", 12345}}), step("sum"), step("mac"), step("log", {{"text", "a line"}}),
                    step("stderr", {{"text", "written\nunfinished"}}), step("barrier", {{"name", "start"}}),
                    step("result", {{"value", {{"loss", 2.5}, {"list", {1, 2}}}}})}));
    CHECK(o.message() == "");
    CHECK_FALSE(o.result.interrupted);
    REQUIRE(o.result.results.size() == n);
    for (const auto& r : o.result.results) CHECK(r == json{{"loss", 2.5}, {"list", {1, 2}}});
    CHECK(o.count("a line") == n);
    CHECK(o.count("written") == n);
    CHECK(o.count("unfinished") == n);
  }
}

TEST_CASE("eight ranks exchange 8 MiB each") {
  const auto o = run(plan_of(8, {step("exchange", {{"bytes", 8 << 20}}), step("result", {{"value", 1}})}));
  CHECK(o.message() == "");
  CHECK(o.result.results == std::vector<json>(8, json(1)));
}

TEST_CASE("a plan without ranks is done") {
  CHECK(run(launch_plan{}).result.results.empty());
}

TEST_CASE("a rank runs where it should and inherits nothing") {
  const int open_here = ::open("/etc/hostname", O_RDONLY); // not close-on-exec
  const int cpu = available_cpus().back();
  auto plan = plan_of(2, {step("look around")});
  plan.ranks[1].cpus = {cpu};
  const auto o = run(plan);
  ::close(open_here);
  CHECK(o.message() == "");
  CHECK(o.result.results[0].at("cpus") == json(available_cpus()));
  CHECK(o.result.results[1].at("cpus") == json{cpu});
  for (const auto& r : o.result.results) {
    const std::vector<std::string> inherited = r.at("inherited");
    REQUIRE(inherited.size() == 2); // the secret and the status page
    CHECK(std::ranges::count_if(inherited, [](const std::string& what) { return has(what, "pipe:"); }) == 1);
    CHECK(std::ranges::count_if(inherited, [](const std::string& what) { return has(what, "regatta-status"); }) == 1);
    CHECK(r.at("stdin") == "/dev/null");
    CHECK(r.at("leads its group") == true);
  }
}

TEST_CASE("strangers disturb nothing") {
  const environment mode("strangers");
  const auto o = run(plan_of(3, {step("exchange", {{"bytes", 100}}), step("result", {{"value", 1}})}));
  CHECK(o.message() == "");
  CHECK(o.result.results == std::vector<json>(3, json(1)));
  CHECK(o.count("refused a connection from 127.0.0.1") > 0);
  CHECK(o.count("expected proof of this run's secret, got none: it is no rank of this run") > 0);
  CHECK(o.count("refused a connection") <= 20); // so many are logged
}

TEST_CASE("strangers that hold all descriptors keep no rank out") {
  const environment mode("strangers");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 100; // a rank's 80 strangers fit, those of all three ranks do not
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto o = run(plan_of(3, {step("exchange", {{"bytes", 100}}), step("result", {{"value", 1}})}));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(o.message() == "");
  CHECK(o.result.results == std::vector<json>(3, json(1)));
}

TEST_CASE("other threads of the coordinator do not disturb the start of ranks") {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!done) (void)std::make_unique<std::string>(1000, 'x');
    });
  for (int i = 0; i < 3; ++i)
    CHECK(run(plan_of(4, {step("barrier", {{"name", "b"}}), step("result", {{"value", i}})})).message() == "");
  done = true;
  for (auto& t : threads) t.join();
}

TEST_CASE("computing for long is no silence, and progress is seen meanwhile") {
  auto plan = plan_of(2, {step("progress", {{"step", 7}, {"samples", 896}}), step("hang")});
  plan.limits.silence = 1500ms;
  launch_hooks hooks;
  int ticks = 0;
  std::vector<rank_progress> last;
  hooks.progress = [&](const std::vector<rank_progress>& p) {
    last = p;
    if (++ticks == 10) ::raise(SIGTERM); // 2.5 s
  };
  const auto result = launch(plan, hooks);
  CHECK_FALSE(result.failure);
  CHECK(result.interrupted);
  REQUIRE(last.size() == 2);
  for (const auto& p : last) {
    CHECK(p.step == 7);
    CHECK(p.samples == 896);
  }
  CHECK(all_gone());
}

TEST_CASE("a rank that dies is named, with how, what it did and what it said last") {
  struct ending {
    json how;
    const char* message;
  };
  const ending endings[] = {
      {step("exit", {{"code", 3}}), "exited with code 3 before its result"},
      {step("exit", {{"code", 0}}), "exited with code 0 before its result"},
      {step("signal", {{"number", SIGKILL}}), "killed by SIGKILL before its result"},
      {step("signal", {{"number", SIGTERM}}), "killed by SIGTERM before its result"},
      {step("abort"), "killed by SIGABRT before its result"},
  };
  for (const auto& e : endings) {
    CAPTURE(e.message);
    const auto meet = step("exchange", {{"bytes", 8}});
    const auto o = run(plan_of(
        {{meet, step("wait for death")},
         // Nothing is sent between the last operation and the end.
         {step("operation", {{"text", "forward"}}), step("stderr", {{"text", "first\nlast words\n"}}), meet,
          step("progress", {{"step", 12}, {"samples", 1536}}), step("operation", {{"text", "backward"}}), e.how},
         {meet, step("barrier", {{"name", "never"}})}}));
    REQUIRE(o.result.failure);
    CHECK(o.result.failure->rank == 1);
    CHECK(o.result.failure->code == 1);
    CHECK(o.message().starts_with("rank 1 (worker 1, pid "));
    CHECK(has(o.message(), e.message));
    CHECK(has(o.message(), "; last operation: backward (12 steps done); its last line on standard error: last words"));
    CHECK(o.count("saw the end of 1") == 1);
    CHECK_FALSE(o.result.interrupted);
  }
}

TEST_CASE("texts that are longer than a frame arrive, cut") {
  const auto o = run(plan_of(1, {step("long texts", {{"bytes", 20'000'000}})}));
  REQUIRE(o.lines.size() >= 1);
  CHECK(o.count("lll ... (19934464 bytes left out)") == 1);
  CHECK(has(o.message(), "ttt ... (19934464 bytes left out)"));
}

TEST_CASE("an exchange within a sum is refused, whatever the sum's tag") {
  for (const char* tag : {"numbers", ""}) {
    const auto o = run(plan_of(1, {step("exchange within a sum", {{"tag", tag}})}));
    CHECK(has(o.message(), fmt::format("exchange \"within\" within the sum \"{}\"", tag)));
  }
}

TEST_CASE("an exception of a rank's own comes before its exit") {
  const auto o = run(plan_of({hang, {step("exchange", {{"bytes", 8}})}, {step("throw", {{"text", "loss is nan"}})}}));
  CHECK(o.result.failure->rank == 2);
  CHECK(has(o.message(), "): loss is nan"));
}

TEST_CASE("a death counts more than a peer's complaint that came before it") {
  const auto plan = [](int signal) { return plan_of(3, {step("hurt rank 1 and blame it", {{"number", signal}})}); };
  auto o = run(plan(SIGKILL));
  CHECK(o.result.failure->rank == 1);
  CHECK(has(o.message(), "killed by SIGKILL"));

  auto stopped = plan(SIGSTOP);
  stopped.limits.silence = 1500ms;
  o = run(stopped);
  CHECK(o.result.failure->rank == 1);
  CHECK(has(o.message(), "sent no heartbeat"));

  o = run(plan(0)); // no rank died, so the complaint is the error
  CHECK(o.result.failure->rank == 0);
  CHECK(has(o.message(), "lost the connection to rank 1"));
}

TEST_CASE("a rank that stops, leaves or never comes ends the run") {
  auto plan = plan_of({hang, {step("signal", {{"number", SIGSTOP}})}});
  plan.limits.silence = 1500ms;
  auto o = run(plan);
  CHECK(o.result.failure->rank == 1);
  CHECK(has(o.message(), "sent no heartbeat for 1."));

  plan.limits.silence = 30s;
  plan.limits.stopped = 700ms;
  o = run(plan);
  CHECK(o.result.failure->rank == 1);
  CHECK(has(o.message(), "stopped by a signal for "));

  o = run(plan_of({hang, {step("close")}}));
  CHECK(o.result.failure->rank == 1);
  CHECK(has(o.message(), "closed its connection to the coordinator"));

  const environment mode("never connect");
  plan = plan_of(2, hang);
  plan.limits.start = 300ms;
  CHECK(has(run(plan).message(), "did not connect within"));
  plan.limits.start = 30s;
  plan.limits.stopped = 700ms;
  std::thread stopper([] {
    std::vector<pid_t> there;
    while (there.empty()) there = processes();
    ::kill(there.front(), SIGSTOP);
  });
  CHECK(has(run(plan).message(), "stopped by a signal for "));
  stopper.join();
}

TEST_CASE("after the result") {
  const auto result = step("result", {{"value", 1}});
  auto o = run(plan_of(2, {result, step("hang")}), [](observed& seen) {
    if (seen.count("hanging") == 2) // so both results are here
      for (const pid_t rank : processes()) ::kill(rank, SIGKILL);
  });
  CHECK(o.message() == "");
  REQUIRE(o.result.warnings.size() == 2);
  for (const auto& [rank, warning] : o.result.warnings) CHECK(has(warning, "killed by SIGKILL after its result"));
  CHECK(o.count("killed by SIGKILL after its result") == 2);
  CHECK(o.result.results == std::vector<json>(2, json(1)));

  auto plan = plan_of({{result}, {result, step("close")}});
  plan.limits.silence = 1000ms;
  o = run(plan);
  CHECK(o.message() == "");
  REQUIRE(o.result.warnings.size() == 1);
  CHECK(o.result.warnings[0].first == 1);
  CHECK(has(o.result.warnings[0].second, "did not end within"));
  CHECK(o.result.results == std::vector<json>(2, json(1)));
}

TEST_CASE("ranks that wait for each other for ever are found") {
  const auto a = step("barrier", {{"name", "a"}}), b = step("barrier", {{"name", "b"}});
  auto o = run(plan_of({{a}, {b}}));
  CHECK(has(o.message(), "rank 0 in \"barrier a\", rank 1 in \"barrier b\""));
  o = run(plan_of({{a}, {step("result", {{"value", 1}}), step("wait for death")}}));
  CHECK(has(o.message(), "rank 1 has given its result"));
}

TEST_CASE("a process that a rank started does not outlive it") {
  CHECK(run(plan_of(2, {step("grandchild"), step("result", {{"value", 1}})})).message() == "");
  const auto o = run(plan_of({hang, {step("grandchild"), step("signal", {{"number", SIGKILL}})}}));
  CHECK(has(o.message(), "killed by SIGKILL"));
}

TEST_CASE("a run that cannot start says why") {
  auto plan = plan_of(2, hang);
  plan.program = "/nonexistent/program";
  CHECK_THROWS_WITH_AS(run(plan), "cannot start /nonexistent/program: No such file or directory", failure);
  plan = plan_of(2, hang);
  plan.ranks[1].cpus = {4000};
  CHECK_THROWS_WITH_AS(run(plan), "cannot run on the CPUs [4000]: Invalid argument", failure);
  plan = plan_of(2, hang);
  plan.address = "203.0.113.1";
  CHECK_THROWS_WITH_AS(run(plan), "cannot listen on 203.0.113.1: Cannot assign requested address", failure);
  plan.program = "/bin/true";
  plan.address = "127.0.0.1";
  CHECK(has(run(plan).message(), "exited with code 0 before its result"));
  CHECK(all_gone());
  CHECK(no_children());
}

TEST_CASE("an exception of a hook comes out, and no process is left") {
  CHECK_THROWS_WITH_AS(run(plan_of(3, hang),
                           [](observed& o) {
                             if (o.count("hanging") == 2) throw std::logic_error("enough");
                           }),
                       "enough", std::logic_error);
  CHECK(all_gone());
  CHECK(no_children());
}

TEST_CASE("a rank killed at any moment ends the run") {
  std::mt19937 random(20261);
  for (int round = 0; round < 8; ++round) {
    CAPTURE(round);
    const auto moment = std::chrono::microseconds(random() % 150000);
    const auto choice = random();
    std::thread killer([&] {
      std::this_thread::sleep_for(moment);
      std::vector<pid_t> there;
      while (there.empty()) there = processes();
      ::kill(there[choice % there.size()], SIGKILL);
    });
    observed o;
    o.result = launch(plan_of(4, {step("loop")}), {});
    killer.join();
    CHECK(has(o.message(), "killed by SIGKILL before its result"));
    CHECK(processes().empty());
    CHECK(no_children());
  }
}

TEST_CASE("a coordinator killed at any moment leaves no process and no port") {
  std::mt19937 random(20262);
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::execl(TEST_RANK, TEST_RANK, "coordinate", "4", nullptr);
      ::_exit(127);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200000));
    const auto used = ports();
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(all_gone());
    for (const int port : used) CHECK(is_free(port));
  }
}
