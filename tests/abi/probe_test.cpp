// SPDX-License-Identifier: Apache-2.0
#include "base/failure.hpp"
#include "registry/plugin_host.hpp"
#include "registry/probe.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

using namespace regatta;

namespace {

bool has(const std::string& text, const char* part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("what the trial returns comes back as one line") {
  CHECK(probe([](const stage_function&) { return std::string(); }).empty());
  CHECK(probe([](const stage_function&) { return std::string("a = b\nc"); }) == "a = b c");
  CHECK(probe([](const stage_function& stage) {
          stage("one");
          stage("two");
          return std::string("no");
        }) == "no");
  CHECK(probe([](const stage_function&) { return std::string(1 << 20, 'x'); }).size() == 1 << 20);
}

TEST_CASE("what ends the child becomes a line") {
  const auto killed = probe([](const stage_function& stage) -> std::string {
    stage("was at the first");
    stage("was at the second");
    std::fputs("last\nwords\n", stderr);
    std::fflush(stderr);
    std::abort();
  });
  CHECK(killed ==
        "was killed by SIGABRT while it was at the second (\"last words\"): a bug of the plugin, run it under "
        "a debugger");
  CHECK(has(probe([](const stage_function&) -> std::string { std::exit(0); }),
            "ended the process while it was being loaded"));
  CHECK(has(probe([](const stage_function&) -> std::string { ::_exit(3); }), "ended the process"));
  CHECK(probe([](const stage_function&) -> std::string { throw std::runtime_error("thrown"); }) == "thrown");
  CHECK(has(probe([](const stage_function&) -> std::string { throw 1; }), "no std::exception"));
}

TEST_CASE("a child that hangs is ended") {
  const auto text = probe(
      [](const stage_function&) -> std::string {
        for (;;) ::pause();
      },
      std::chrono::milliseconds(100));
  CHECK(has(text, "did not come back within 0.1 s"));
}

TEST_CASE("no child stays behind, and none runs what this process registered for its end") {
  (void)probe([](const stage_function&) -> std::string { std::exit(0); });
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
