// SPDX-License-Identifier: Apache-2.0
//
// Predicted times of strategies beside closed forms in LogGOPS's L, o, O, g, G.
#include "matrix.hpp"

#include <numeric>

using namespace regatta;
using namespace regatta::test;

namespace {

constexpr std::uint64_t latency = 9'000, overhead = 1'300, gap = 50, elements = 1 << 18, bytes = elements * 4;
constexpr double rate = 1.25;

std::uint64_t on_link(std::uint64_t message) {
  return gap + static_cast<std::uint64_t>(static_cast<double>(message) / rate);
}

simulation_setup one_bucket(const char* strategy, std::uint32_t workers, std::uint32_t servers = 0) {
  simulation_setup s;
  s.strategy = strategy;
  s.workers = workers;
  s.servers = servers;
  s.ghosts = true;
  s.steps = 1;
  s.tensors = {elements};
  s.parameters["bucket"] = bytes;
  s.network.order = link_order::shared;
  s.link_of.resize(workers + servers);
  std::iota(s.link_of.begin(), s.link_of.end(), 0u);
  s.network.links.assign(workers + servers, {.out_bytes_per_ns = rate, .in_bytes_per_ns = rate, .latency_ns = latency});
  s.network.overhead_ns = overhead;
  s.network.gap_ns = gap;
  s.work.ns_per_byte = 0;
  return s;
}

// Returns the ns from the last gradient to the end of the step; the same for all workers.
std::uint64_t exchange_ns(const simulation_setup& s) {
  const auto r = simulate(plugins(), s);
  for (const auto& steps : r.steps) REQUIRE(steps == r.steps[0]);
  return r.steps[0][0].end - r.steps[0][0].computed;
}

} // namespace

TEST_CASE("a ring: 2(n-1) messages of B/n, one after the other") {
  for (const std::uint64_t n : {2, 4, 16, 64}) {
    CAPTURE(n);
    simulation_setup s = one_bucket("allreduce", static_cast<std::uint32_t>(n));
    s.parameters["algorithm"] = "ring";
    CHECK(exchange_ns(s) == 2 * (n - 1) * (2 * overhead + latency + on_link(bytes / n)));
  }
}

TEST_CASE("halving and doubling: 2 log n messages of B/2, B/4, ...") {
  for (const std::uint64_t n : {2, 4, 16, 64}) {
    CAPTURE(n);
    simulation_setup s = one_bucket("allreduce", static_cast<std::uint32_t>(n));
    s.parameters["algorithm"] = "halving_doubling";
    std::uint64_t expected = 0;
    for (std::uint64_t part = bytes / 2; part >= bytes / n; part /= 2)
      expected += 2 * (2 * overhead + latency + on_link(part));
    CHECK(exchange_ns(s) == expected);
  }
}

TEST_CASE("circulant: 2 ceil(log2 n) messages, of half the chunks, a quarter, ..., rounded down") {
  for (const std::uint64_t n : {2, 3, 5, 12, 16, 33}) {
    CAPTURE(n);
    simulation_setup s = one_bucket("allreduce", static_cast<std::uint32_t>(n));
    s.parameters["algorithm"] = "circulant";
    constexpr std::uint64_t chunk = 1600;
    s.tensors = {static_cast<std::int64_t>(chunk * n)};
    std::uint64_t expected = 0;
    for (std::uint64_t chunks = n; chunks > 1; chunks -= chunks / 2)
      expected += 2 * (2 * overhead + latency + on_link(chunks / 2 * chunk * 4));
    CHECK(exchange_ns(s) == expected);
  }
}

// The engine reads 4 bytes and writes 2 of each element before it sends, and the other way round; a receive that adds also
// reads 4 bytes.
TEST_CASE("messages in a wire type are converted before they leave and once they have come") {
  for (const std::uint64_t n : {2, 16})
    for (const std::string wire : {"bf16", "fp16"})
      for (const link_order order : {link_order::in_turn, link_order::shared})
        for (const bool adds : {true, false}) {
          CAPTURE(n);
          CAPTURE(wire);
          CAPTURE(adds);
          simulation_setup s = one_bucket("allreduce", static_cast<std::uint32_t>(n));
          s.parameters["algorithm"] = "ring";
          s.parameters["wire"] = wire;
          s.network.order = order;
          s.network.adds = adds;
          s.network.bf16_ns_per_byte = 0.25;
          s.network.fp16_ns_per_byte = 0.5;
          const std::uint64_t message = bytes / 2 / n, twice = wire == "fp16" ? 2 : 1;
          const std::uint64_t without = 2 * (n - 1) * (2 * overhead + latency + on_link(message));
          CHECK(exchange_ns(s) == without + 2 * (n - 1) * 6 * message / 4 * twice);
          s.network.add_ns_per_byte = 1e-9; // adding takes time: half of the messages are added
          CHECK(exchange_ns(s) == without + (n - 1) * (6 + 8) * message / 4 * twice);
          s.parameters["wire"] = "fp32";
          s.network.add_ns_per_byte = 0;
          CHECK(exchange_ns(s) == 2 * (n - 1) * (2 * overhead + latency + on_link(2 * message)));
        }
}

TEST_CASE("a receive that adds takes longer, also where the engine adds for the transport") {
  for (const bool adds : {true, false}) {
    CAPTURE(adds);
    simulation_setup s = one_bucket("allreduce", 2);
    s.parameters["algorithm"] = "ring";
    s.network.adds = adds;
    const std::uint64_t without = exchange_ns(s);
    s.network.add_ns_per_byte = 8; // more than the link's time, during which the bytes that have come are added
    CHECK(exchange_ns(s) == without + 8 * bytes / 2 - on_link(bytes / 2));
  }
}

// Of two buckets, the first one is exchanged beside the backward pass of the second.
TEST_CASE("messages take their processor time from computing on the same core") {
  simulation_setup s = one_bucket("allreduce", 2);
  s.parameters["algorithm"] = "ring";
  s.tensors = {elements, elements};
  s.compute = [](std::uint32_t, std::uint64_t, compute_times& t) {
    t.forward = {1000, 1000};
    t.backward = {1000, 100'000'000};
  };
  const auto computing = [&] {
    const simulated_step step = simulate(plugins(), s).steps[0][0];
    CHECK(step.lost == std::array<std::uint64_t, 3>{0, 0, step.computed - step.backward - 100'001'000});
    return step.lost[2];
  };
  CHECK(computing() == 0);
  s.cores = {{{1, 1}, {1, 1}}, {0, 1}, 1};
  CHECK(computing() == 4 * overhead); // two sends, two receives
  s.cores.loss = 1.5;
  CHECK(computing() == 6 * overhead);
  s.network.overhead_ns_per_byte = 0.125;
  CHECK(computing() == 6 * overhead + bytes * 3 / 8); // 4 messages of half a bucket
  s.cores.groups = {{2, 1}, {2, 1}};
  CHECK(computing() == 0);
}

// A server's incoming link carries n pushes of B/S, its outgoing one as many answers; a worker's link S of each.
TEST_CASE("parameter servers: the busier end of the links bounds a step") {
  for (const auto& [n, servers] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{2, 1}, {16, 1}, {16, 4}, {4, 16}}) {
    CAPTURE(n);
    CAPTURE(servers);
    simulation_setup s = one_bucket("sync_ps", static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(servers));
    s.parameters["early"] = false;
    s.network.overhead_ns = s.network.gap_ns = 0;
    const std::uint64_t most = std::max(n, servers) * bytes / servers;
    const auto once = static_cast<std::uint64_t>(static_cast<double>(most) / rate);
    const std::uint64_t expected = 2 * (once + latency), got = exchange_ns(s);
    CHECK(got >= expected - 4); // roundings to ns
    CHECK(got <= expected + 4);
  }
}

// Links that serve one message after the other, as real ones do: if all ranks sent to rank 0 first, its link would be
// the first one to be busy, and the others idle meanwhile.
TEST_CASE("ranks that send to all others at once use all links at once") {
  for (const auto& [strategy, servers] : std::vector<std::pair<std::string, std::uint32_t>>{
           {"allreduce", 0}, {"sync_ps", 8}, {"async_ps", 8}, {"geo_ps", 8}}) {
    CAPTURE(strategy);
    constexpr std::uint32_t n = 8;
    simulation_setup s = one_bucket(strategy.c_str(), n, servers);
    s.colocate = servers > 0;
    s.link_of.resize(n);
    s.network.links.resize(n);
    if (!servers) s.parameters["algorithm"] = "sharded";
    if (strategy == "sync_ps") s.parameters["early"] = false;
    if (strategy == "geo_ps") s.parameters["k"] = 1;
    s.network.order = link_order::in_turn;
    s.network.overhead_ns = s.network.gap_ns = 0;
    const auto r = simulate(plugins(), s);
    const auto once = static_cast<std::uint64_t>(static_cast<double>(bytes * (n - 1) / n) / rate);
    for (const auto& steps : r.steps) {
      const std::uint64_t exchange = steps[0].end - steps[0].computed;
      CHECK(exchange >= 2 * once);
      CHECK(exchange <= 2 * (once + latency) + once / n); // a message of one worker may wait for that of another
    }
  }
}

TEST_CASE("workers that send compressed gradients to all others use all links at once") {
  constexpr std::uint32_t n = 8;
  simulation_setup s = one_bucket("dgc", n);
  s.parameters = {{"sparsity", {0.75}}};
  s.network.order = link_order::in_turn;
  s.network.overhead_ns = s.network.gap_ns = 0;
  const auto message = static_cast<std::uint64_t>(static_cast<double>(elements / 4 * 8) / rate);
  const auto r = simulate(plugins(), s);
  for (const auto& steps : r.steps) {
    const std::uint64_t exchange = steps[0].end - steps[0].computed;
    CHECK(exchange >= (n - 1) * message);
    CHECK(exchange <= n * message + latency); // a message of one worker may wait for that of another
  }
}
