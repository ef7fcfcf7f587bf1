// SPDX-License-Identifier: Apache-2.0
#include "base/failure.hpp"
#include "registry/plugin_host.hpp"
#include "registry/run_in_child.hpp"
#include "simulate/side_by_side.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace regatta;
using nlohmann::json;

namespace {

using question = std::function<json(const stage_function&)>;

// The text of its failure, which must come.
std::string failed(const question& q, const child_options& o = {}) {
  try {
    run_in_child(q, o);
  } catch (const failure& f) {
    return f.what();
  }
  return "it did not fail";
}

[[noreturn]] json hang(const stage_function&) {
  for (;;) ::pause();
}

bool has(const std::string& text, const char* part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the child's result comes back as data") {
  CHECK(run_in_child([](const stage_function&) { return json("a = b\nc"); }) == "a = b\nc");
  CHECK(run_in_child([](const stage_function& stage) {
          stage("", "one");
          stage("who", "two");
          return json{{"numbers", {1, 2.5, -3}}, {"nothing", nullptr}};
        }) == json{{"numbers", {1, 2.5, -3}}, {"nothing", nullptr}});
  CHECK(run_in_child([](const stage_function&) { return json(std::string(1 << 20, 'x')); }).get<std::string>().size() ==
        1 << 20);
}

TEST_CASE("each way in which the child ends becomes a line") {
  const auto killed = failed([](const stage_function& stage) -> json {
    stage("", "was at the first");
    stage("model m (m.so)", "was at the second");
    std::fputs("last\nwords\n", stderr);
    std::fflush(stderr);
    std::abort();
  });
  CHECK(killed ==
        "model m (m.so) was killed by SIGABRT while it was at the second (\"last words\"): a bug of the plugin, run it "
        "under a debugger");
  CHECK(
      has(failed([](const stage_function&) -> json { std::exit(0); }), "ended the process while it was being loaded"));
  CHECK(has(failed([](const stage_function&) -> json { ::_exit(3); }), "ended the process"));
  CHECK(failed([](const stage_function&) -> json { throw std::runtime_error("thrown"); }) == "thrown");
  CHECK(has(failed([](const stage_function&) -> json { throw 1; }), "no std::exception"));
  const auto code = [](exit_code c) {
    try {
      run_in_child([c](const stage_function&) -> json { throw failure(c, "text"); });
    } catch (const failure& f) {
      return f.code();
    }
    return exit_code::done;
  };
  CHECK(code(exit_code::usage) == exit_code::usage);
  CHECK(code(exit_code::skipped) == exit_code::skipped);
}

TEST_CASE("a child that hangs is ended") {
  child_options o;
  o.limit = std::chrono::milliseconds(100);
  CHECK(has(failed(hang, o), "did not return within 0.1 s while it was being loaded"));
}

TEST_CASE("a child that hangs is ended at once where the user asks for it") {
  child_options o;
  o.limit = std::chrono::hours(1);
  int looks = 0;
  o.interrupted = [&] { return ++looks > 2; };
  CHECK(failed(hang, o) == "interrupted");
}

TEST_CASE("of many questions those that break hurt no other") {
  const auto answers = run_all_in_child(6, [](std::size_t i, const stage_function& stage) -> json {
    stage("number " + std::to_string(i), "was asked");
    if (i == 1) std::raise(SIGSEGV);
    if (i == 2) throw failure(exit_code::usage, "refused");
    if (i == 4) std::exit(0);
    return json{{"i", i}, {"child", ::getpid()}};
  });
  REQUIRE(answers.size() == 6);
  for (const std::size_t i : {0, 3, 5}) CHECK(answers[i].value.at("i") == i);
  CHECK(has(answers[1].failed->what(), "number 1 was killed by SIGSEGV while it was asked"));
  CHECK(std::string(answers[2].failed->what()) == "refused");
  CHECK(has(answers[4].failed->what(), "number 4 ended the process while it was asked"));
  // One child answers for as long as it lives.
  const auto calm = run_all_in_child(3, [](std::size_t, const stage_function&) -> json { return ::getpid(); });
  CHECK(calm[0].value == calm[2].value);
  CHECK(calm[0].value != ::getpid());
}

TEST_CASE("answers are kept when no second child can be started") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  child_options o;
  o.interrupted = [&] { // called once the first child runs: no other pipe can be made from now on
    const rlimit none{3, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    return false;
  };
  std::vector<child_result> answers;
  CHECK_NOTHROW(answers = run_all_in_child(
                    4,
                    [](std::size_t i, const stage_function&) -> json {
                      if (i == 1) ::_exit(3);
                      return i;
                    },
                    o));
  ::setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE(answers.size() == 4);
  CHECK(answers[0].value == 0);
  CHECK(has(answers[1].failed->what(), "ended the process"));
  for (const std::size_t i : {2, 3}) {
    CHECK(answers[i].failed->code() == exit_code::run);
    CHECK(has(answers[i].failed->what(), "cannot start the process that loads plugins: no pipe"));
  }
}

TEST_CASE("children side by side: each item has its own, and at most as many run as are allowed") {
  side_by_side how;
  how.jobs = 3;
  std::vector<child_result> results(7);
  std::size_t running = 0, most = 0, asked = 0;
  how.begun = [&](std::size_t) { most = std::max(most, ++running); };
  how.may_begin = [&](std::size_t item, const std::vector<int>& processes) {
    ++asked;
    CHECK(processes.size() == running);
    CHECK(item < 7);
    return item < 5; // the last two wait until nothing runs
  };
  how.take = [&](std::size_t item, child_result&& result) {
    CHECK((item != 5 || running == 1));
    --running;
    results.at(item) = std::move(result);
  };
  const auto work = [](std::size_t item, const stage_function& stage) -> json {
    stage("item " + std::to_string(item), "was tested");
    if (item == 2) std::abort();
    if (item == 3) throw failure(exit_code::usage, "item 3 is wrong");
    return {{"item", item}, {"text", std::string(100'000, 'x')}}; // more than a pipe holds
  };
  run_side_by_side(7, work, how);
  CHECK(most >= 2);
  CHECK(most <= 3);
  CHECK(asked > 0);
  for (const std::size_t item : {0, 1, 4, 5, 6}) CHECK(results[item].value.at("item") == item);
  REQUIRE(results[2].failed);
  CHECK(results[2].failed->what() ==
        std::string("item 2 was killed by SIGABRT while it was tested: a bug of the plugin, run it under a debugger"));
  REQUIRE(results[3].failed);
  CHECK(results[3].failed->code() == exit_code::usage);
  CHECK(results[3].failed->what() == std::string("item 3 is wrong"));
}

TEST_CASE("children side by side are ended where the user asks for it, and late ones after their limit") {
  side_by_side how;
  how.jobs = 2;
  std::vector<int> codes(3);
  how.take = [&](std::size_t item, child_result&& result) {
    codes.at(item) = result.failed ? static_cast<int>(result.failed->code()) : 0;
  };
  const auto hangs = [](std::size_t, const stage_function&) -> json {
    for (;;) ::pause();
  };
  child_options options;
  int polls = 0;
  options.interrupted = [&] { return ++polls > 2; };
  run_side_by_side(3, hangs, how, options);
  CHECK(codes == std::vector<int>(3, static_cast<int>(exit_code::interrupted)));
  options.interrupted = nullptr;
  options.limit = std::chrono::milliseconds(1);
  run_side_by_side(3, hangs, how, options);
  CHECK(codes == std::vector<int>(3, static_cast<int>(exit_code::plugin)));
}

TEST_CASE("no child stays behind, and none runs what this process registered for its end") {
  failed([](const stage_function&) -> json { std::exit(0); });
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1); // ECHILD
}

TEST_CASE("a host keeps the last text of its instance, one line") {
  plugin_host host;
  CHECK(host.c()->fail(host.c()->context, RG_E_PEER, "first") == RG_E_PEER);
  CHECK(host.c()->fail(host.c()->context, RG_E_CONFIG, "two\nlines") == RG_E_CONFIG);
  CHECK(host.take_error() == "two lines");
  CHECK(host.take_error().empty());
  host.c()->fail(host.c()->context, RG_E_CONFIG, nullptr);
  CHECK(host.take_error().empty());
}

TEST_CASE("a host logs and lends extensions, and what these throw ends there") {
  std::string heard;
  const int table = 0;
  plugin_host host([&](int level, const std::string& text) { heard += std::to_string(level) + text; },
                   [&](std::string_view id) -> const void* {
                     if (id == "boom") throw std::runtime_error("boom");
                     return id == "known/1" ? &table : nullptr;
                   });
  const auto* c = host.c();
  c->log(c->context, RG_LOG_WARNING, "a\nb");
  CHECK(heard == "1a b");
  CHECK(c->extension(c->context, "known/1") == &table);
  CHECK(c->extension(c->context, "unknown/1") == nullptr);
  CHECK(c->extension(c->context, "boom") == nullptr);
  CHECK(c->extension(c->context, nullptr) == nullptr);
  plugin_host bare;
  bare.c()->log(bare.c()->context, RG_LOG_ERROR, "nobody listens");
  CHECK(bare.c()->extension(bare.c()->context, "known/1") == nullptr);
}

TEST_CASE("a status becomes an exit code") {
  plugin_host host;
  auto code_of = [&](rg_status status) {
    try {
      check(status, host, "transport x");
    } catch (const failure& e) {
      return static_cast<int>(e.code());
    }
    return 0;
  };
  CHECK(code_of(RG_OK) == 0);
  CHECK(code_of(RG_AGAIN) == 0);
  CHECK(code_of(RG_TIMEOUT) == 0);
  CHECK(code_of(RG_E_CONFIG) == 2);
  CHECK(code_of(RG_E_UNSUPPORTED) == 77);
  CHECK(code_of(RG_E_PLUGIN) == 3);
  CHECK(code_of(RG_E_PEER) == 1);
  CHECK(code_of(-99) == 1);

  host.c()->fail(host.c()->context, RG_E_PEER, "rank 3 left");
  CHECK_THROWS_WITH(check(RG_E_PEER, host, "transport x"), "transport x: rank 3 left");
  CHECK_THROWS_WITH(check(RG_E_PEER, host, "transport x"),
                    "transport x: a peer is gone or broke the protocol (status -3; the plugin gave no text)");
  CHECK_THROWS_WITH(call(host, "model y", [] { throw std::runtime_error("thrown"); }), "model y: thrown");
}
