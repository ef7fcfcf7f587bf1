// SPDX-License-Identifier: Apache-2.0
//
// The virtual clock: the end of each run in ns, and a digest of the messages and weights of all ranks, are those that
// were recorded. A change of the simulator that is meant to be faster only must change none of them. After a change of
// the model or of a strategy, copy the lines that the failed checks print.
#include "matrix.hpp"

#include <bit>

#include <fmt/format.h>

using namespace regatta;
using namespace regatta::test;

namespace {

struct recorded {
  std::string run; // "sync_ps 4+3 eager adds"
  std::uint64_t virtual_ns, digest;
};

const std::vector<recorded>& all_recorded() {
  static const std::vector<recorded> all = {
#include "virtual_times.inc"
  };
  return all;
}

std::uint64_t digest_of(const simulation_result& r) {
  std::uint64_t sum = 0xcbf29ce484222325;
  const auto add = [&](std::uint64_t x) { sum = (sum ^ x) * 0x100000001b3; };
  for (const auto& c : r.counted) {
    for (const std::uint64_t x : {c.messages_sent, c.bytes_sent, c.messages_received, c.bytes_received}) add(x);
    for (const auto& [to, sent] : c.sent_to)
      for (const std::uint64_t x : {std::uint64_t{to.first}, std::uint64_t{to.second}, sent.first, sent.second}) add(x);
  }
  for (const auto& worker : r.weights)
    for (const float w : worker) add(std::bit_cast<std::uint32_t>(w));
  return sum;
}

// Returns the end of the run, and checks both figures.
void expect_recorded(const std::string& run, const simulation_setup& s) {
  CAPTURE(run);
  const simulation_result r = simulate(plugins(), s);
  const std::uint64_t digest = digest_of(r);
  const auto found = std::ranges::find(all_recorded(), run, &recorded::run);
  const bool same = found != all_recorded().end() && found->virtual_ns == r.virtual_ns && found->digest == digest;
  CHECK_MESSAGE(same, fmt::format("{{\"{}\", {}, {:#x}}},", run, r.virtual_ns, digest));
}

struct strategy_run {
  const char* strategy;
  std::map<std::string, nlohmann::json> parameters;
  std::uint32_t servers = 0;
  bool clips = true; // accepts optimizer.clip_norm
};

const std::vector<strategy_run>& strategies() {
  static const std::vector<strategy_run> all = {
      {"none", {}},
      {"allreduce", {{"algorithm", "ring"}, {"bucket", 256}, {"lanes", 3}}},
      {"allreduce", {{"algorithm", "halving_doubling"}, {"bucket", 256}}},
      {"allreduce", {{"algorithm", "recursive_doubling"}, {"bucket", 256}}},
      {"allreduce", {{"algorithm", "sharded"}, {"bucket", 256}}},
      {"allreduce", {{"algorithm", "ring"}, {"bucket", 256}, {"wire", "bf16"}}},
      {"sync_ps", {{"bucket", 256}}, 1},
      {"sync_ps", {{"bucket", 256}}, 3},
      {"sync_ps", {{"bucket", 256}, {"wire", "fp16"}}, 2},
      {"sync_ps", {{"bucket", 256}, {"early", false}, {"ahead", 1}}, 2},
      {"async_ps", {}, 1, false},
      {"async_ps", {}, 3, false},
      {"geo_ps", {}, 2, false},
      {"local_sgd", {{"k", 2}}},
      {"dgc", {}, 0, false},
      {"allreduce", {{"algorithm", "circulant"}, {"bucket", 256}}},
  };
  return all;
}

} // namespace

TEST_CASE("the virtual time of every strategy is the recorded one") {
  std::size_t number = 0;
  for (const strategy_run& x : strategies()) {
    for (const std::uint32_t workers : {2, 3, 5, 8})
      for (const bool eager : {true, false})
        for (const bool adds : {true, false}) {
          simulation_setup s;
          s.strategy = x.strategy;
          s.parameters = x.parameters;
          s.workers = workers;
          s.servers = x.servers;
          s.network.eager = eager;
          s.network.adds = adds;
          s.network.bytes_per_ns = workers % 2 ? 1.0 : 0.37;
          s.network.uneven = workers == 3;
          s.colocate = workers == 5 || workers == 8;
          s.straggler_ns = workers == 8 ? 50'000 : 0;
          s.late_ns = workers == 5 ? 200'000 : 0;
          s.optimizer.clip_norm = workers == 3 && x.clips ? 0.5 : 0;
          s.table_rows = workers == 5 && x.servers ? 50 : 0;
          s.steps = 4;
          if (s.strategy == "geo_ps") s.table_rows = 50;
          expect_recorded(fmt::format("{} {}{}{}{} {}", x.strategy, workers, x.servers ? "+" : "",
                                      x.servers ? std::to_string(x.servers) : "", eager ? " eager" : "",
                                      fmt::format("{}#{}", adds ? "adds" : "", number)),
                          s);
        }
    ++number;
  }
}

TEST_CASE("the virtual time of up to 64 ghosts is the recorded one") {
  const std::vector<strategy_run> large = {
      {"allreduce", {{"algorithm", "ring"}, {"bucket", 1 << 20}}},
      {"allreduce", {{"algorithm", "halving_doubling"}, {"bucket", 1 << 20}}},
      {"allreduce", {{"algorithm", "hierarchical"}, {"bucket", 1 << 20}}},
      {"allreduce", {{"algorithm", "sharded"}, {"bucket", 1 << 20}}},
      {"sync_ps", {{"bucket", 1 << 20}}, 4},
      {"sync_ps", {{"bucket", 1 << 20}}, 16},
      {"async_ps", {{"bucket", 1 << 20}}, 4},
      {"local_sgd", {{"k", 2}}},
      {"allreduce", {{"algorithm", "circulant"}, {"bucket", 1 << 20}}},
      {"dgc", {}},
  };
  std::size_t number = 0;
  for (const strategy_run& x : large) {
    for (const std::uint32_t workers : {16, 48}) {
      simulation_setup s;
      s.strategy = x.strategy;
      s.parameters = x.parameters;
      s.workers = workers;
      s.servers = x.servers;
      s.hosts = workers / 8;
      s.network.eager = workers == 16;
      s.network.latency_ns = 20'000;
      s.network.bytes_per_ns = 1.25;
      s.tensors = {1'000'000, 4'000, 250'000, 16, 70'000};
      s.ghosts = true;
      s.steps = 3;
      expect_recorded(fmt::format("ghosts {} {}#{}", x.strategy, workers, number), s);
    }
    ++number;
  }
}
