// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <doctest/doctest.h>
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "json.hpp"
#include "machine/core_independence.hpp"
#include "machine/host.hpp"
#include "machine/speed.hpp"

using namespace regatta;
using namespace regatta::test;
using nlohmann::json;

namespace {
bool large_machine = false; // sched_getaffinity() below reports 2048 CPUs
}

// Takes the place of the C library's function in this program. The kernel too refuses a mask shorter than its own.
extern "C" int sched_getaffinity(pid_t pid, std::size_t bytes, cpu_set_t* set) noexcept {
  if (!large_machine) return ::syscall(SYS_sched_getaffinity, pid, bytes, set) < 0 ? -1 : 0;
  if (bytes < 2048 / 8) {
    errno = EINVAL;
    return -1;
  }
  CPU_ZERO_S(bytes, set);
  for (std::size_t cpu = 0; cpu < 2048; ++cpu) CPU_SET_S(cpu, bytes, set);
  return 0;
}

namespace {

std::vector<int> cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) found.push_back(cpu);
  return found;
}

json measured(double fma) {
  return {{"cpus", {0, 1}}, {"fma", fma}, {"copy", 0.931}, {"line_round_trip_seconds", 1e-7}};
}

} // namespace

TEST_CASE("two CPUs at once do a part of the work of each alone, and this thread stays where it was") {
  const std::vector<int> here = cpus();
  if (here.size() < 2) {
    CHECK_FALSE(measure_core_independence(here[0], here[0]));
    MESSAGE("one CPU: nothing to measure");
    return;
  }
  const auto c = measure_core_independence(here[0], here[1]);
  REQUIRE(c);
  CHECK(c->first == here[0]);
  CHECK(c->second == here[1]);
  for (const double ratio : {c->fma, c->copy}) {
    CHECK(ratio > 0);
    CHECK(ratio <= 1.3);
  }
  if (c->line_round_trip_seconds) CHECK(*c->line_round_trip_seconds > 0);
  CHECK(cpus() == here);
  const json j = to_json(c);
  CHECK(j.size() == 5);
  CHECK(j.at("disturbed") == c->disturbed);
  CHECK(j.at("cpus") == json{here[0], here[1]});
  CHECK(j.at("fma") == c->fma);
  CHECK(j.at("copy") == c->copy);
  CHECK(j.contains("line_round_trip_seconds"));
}

TEST_CASE("two CPUs at once have rates, and each has a part of them") {
  const std::vector<int> here = cpus();
  CHECK_FALSE(measure_rates_at_once(here[0], here[0]));
  if (here.size() < 2) return;
  const auto r = measure_rates_at_once(here[0], here[1]);
  REQUIRE(r);
  const json j = to_json(r);
  CHECK(j.at("fma").get<double>() > 1e8); // of two CPUs: a slow one does 1 GFLOP/s
  CHECK(j.at("copy").get<double>() > 1e7);
  CHECK((j.at("clock_hz").is_null() || j.at("clock_hz").get<double>() > 1e7));
  CHECK((j.at("line_round_trip_seconds").is_null() || j.at("line_round_trip_seconds").get<double>() > 0));
  CHECK(cpus() == here); // this thread stays where it was
}

TEST_CASE("where nothing can be measured the answer is null") {
  const int cpu = cpus()[0];
  CHECK(to_json(measure_core_independence(cpu, cpu)).is_null());
  CHECK(to_json(measure_core_independence(cpu, 1 << 20)).is_null()); // no such CPU
  CHECK(to_json(measure_core_independence(-1, cpu)).is_null());
  CHECK(independence_text(nullptr).empty());
  CHECK(independence_text(json::object()).empty());
}

TEST_CASE("the figures in words") {
  CHECK(independence_text(measured(0.51)) == "FMA 0.51, copies 0.93 of two (hyperthreads of one core)");
  json loaded = measured(0.51);
  loaded["disturbed"] = true;
  CHECK(independence_text(loaded) == "FMA 0.51, copies 0.93 of two (disturbed by other load)");
  CHECK(independence_text(measured(0.75)) == "FMA 0.75, copies 0.93 of two (cores that share)");
  CHECK(independence_text(measured(0.99)) == "FMA 0.99, copies 0.93 of two (independent cores)");
}

TEST_CASE("multiply-adds are computed, not left out") {
  CHECK(multiply_add(0, 2, 1) == 0);
  CHECK(multiply_add(1, 2, 1) == 256);
  CHECK(multiply_add(3, 2, 1) == 256 * 7);
}

TEST_CASE("a machine with more than 1024 CPUs has a number of cores") {
  large_machine = true;
  const json host = describe_host(1);
  large_machine = false;
  CHECK(host.at("cores") == 2048);
}
