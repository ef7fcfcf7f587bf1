// SPDX-License-Identifier: Apache-2.0
//
// The kill storm: campaigns drawn by seed, each disturbed at a random moment and judged afterwards.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/mount.h>

#include "verdict.hpp"

using namespace regatta::chaos;
namespace test = regatta::test;

namespace {

struct row {
  std::size_t count = 0, missed = 0, violations = 0;
  double latest = 0;
};

struct settings {
  double minutes = 5;
  std::uint64_t seed = 0;
  std::uint64_t campaigns = 0; // 0: as many as there is time for
  bool once = false;
};

bool can_mount() {
  const temporary_folder s;
  if (::mount("tmpfs", s.path.c_str(), "tmpfs", 0, "size=64k") != 0) return false;
  ::umount(s.path.c_str());
  return true;
}

void print_violation(const campaign& c, const std::vector<std::string>& problems, const observation& first,
                     const observation& second) {
  fmt::print("\nVIOLATION with seed {}: {}\nrepeat it with: ./dev chaos --seed {} --once\n", c.seed,
             describe(c.disturbance), c.seed);
  for (const std::string& problem : problems) fmt::print("  * {}\n", problem);
  fmt::print(
      "--- experiment\n{}--- exit code {}; standard error\n{}\n--- standard error of --resume, exit code {}\n{}\n---\n",
      c.toml, first.code, first.err, second.code, second.err);
}

// Returns whether all went as promised.
bool run_one(std::uint64_t seed, bool disks, std::map<std::string, row>& table) {
  const campaign c = draw(seed, disks);
  campaign_run run(c);
  const observation first = run.disturbed();
  std::vector<std::string> problems = judge_disturbed(c, run, first);
  const observation second = run.resumed();
  for (std::string& problem : judge_resumed(c, run, second)) problems.push_back(std::move(problem));
  row& r = table[name_of(c.disturbance)];
  ++r.count;
  r.missed += !first.hit;
  r.violations += !problems.empty();
  r.latest = std::max(r.latest, first.seconds.value_or(0));
  fmt::print("seed {:<6} {:<58} {}{}\n", seed, describe(c.disturbance), problems.empty() ? "as promised" : "VIOLATION",
             first.hit ? "" : " (" + first.skipped + ")");
  if (!problems.empty()) print_violation(c, problems, first, second);
  std::fflush(stdout);
  return problems.empty();
}

void print_table(const std::map<std::string, row>& table) {
  fmt::print("\n{:<22} {:>6} {:>8} {:>11} {:>11}\n", "disturbance", "count", "too late", "latest [s]", "violations");
  row all;
  for (const auto& [name, r] : table) {
    fmt::print("{:<22} {:>6} {:>8} {:>11} {:>11}\n", name, r.count, r.missed,
               r.latest > 0 ? fmt::format("{:.2f}", r.latest) : "-", r.violations);
    all.count += r.count;
    all.missed += r.missed;
    all.violations += r.violations;
  }
  fmt::print("{:<22} {:>6} {:>8} {:>11} {:>11}\n", "all", all.count, all.missed, "", all.violations);
}

} // namespace

int main(int argc, char** argv) {
  doctest::Context context; // the helpers of tests check with REQUIRE
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler([](const doctest::AssertData& a) {
    if (a.m_failed) throw std::runtime_error(fmt::format("{}:{}: {} failed", a.m_file, a.m_line, a.m_expr));
  });
  settings s;
  s.seed = static_cast<std::uint64_t>(std::time(nullptr));
  CLI::App app{
      "Disturbs campaigns at random and checks that errors name the rank that was hit, in time; that the other\n"
      "cases run; that results are whole; that --resume completes them; and that nothing is left.\n"
      "Seed N draws the first campaign, N + 1 the next. Exit code 1: a promise was broken.",
      "./dev chaos"};
  app.add_option("minutes", s.minutes, "how long; default 5")->check(CLI::PositiveNumber);
  app.add_option("--seed", s.seed, "of the first campaign; default: the time");
  app.add_option("--campaigns", s.campaigns, "how many, however long they take");
  app.add_flag("--once", s.once, "one campaign: that of the seed");
  CLI11_PARSE(app, argc, argv);
  if (s.once) s.campaigns = 1;
  const bool disks = can_mount();
  if (!disks) fmt::print("no file system can be mounted (it takes root): no disk fills up\n");

  std::map<std::string, row> table;
  bool good = true;
  const auto end = clock::now() + std::chrono::duration<double>(s.minutes * 60);
  for (std::uint64_t i = 0; s.campaigns > 0 ? i < s.campaigns : clock::now() < end; ++i)
    good = run_one(s.seed + i, disks, table) && good;
  print_table(table);
  return good ? 0 : 1;
}
