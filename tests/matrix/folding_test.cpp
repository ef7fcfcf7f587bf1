// SPDX-License-Identifier: Apache-2.0
//
// Folded simulations: the same as unfolded ones, to the ns, for every strategy that declares a symmetry.
#include "matrix.hpp"

#include "base/failure.hpp"
#include "cluster/layout.hpp"

#include <future>
#include <numeric>

using namespace regatta;
using namespace regatta::test;

namespace {

simulation_setup ghosts(const char* strategy, std::uint32_t workers, std::uint32_t servers = 0) {
  simulation_setup s;
  s.strategy = strategy;
  s.workers = workers;
  s.servers = servers;
  s.ghosts = true;
  s.steps = 3;
  s.tensors = {1 << 16, 1 << 14, 3 << 14}; // cut evenly among up to 64 ranks
  s.parameters["bucket"] = 1 << 18;
  s.network.latency_ns = 7'000;
  s.network.bytes_per_ns = 1.25;
  s.network.order = link_order::shared;
  return s;
}

// Full-duplex links of hosts, as many as given or one for each rank, and processors that take time for messages, also from computing.
void predict(simulation_setup& s, std::uint32_t hosts = 0) {
  const auto layout = cluster_layout::make(s.workers, s.servers, s.colocate, hosts ? hosts : 1);
  std::vector<std::uint32_t> own(layout.size());
  std::iota(own.begin(), own.end(), 0u);
  s.hosts = hosts ? hosts : 1;
  s.link_of = hosts ? layout.host_of : own;
  s.network.links.assign(hosts ? hosts : own.size(),
                         {.out_bytes_per_ns = 1.25, .in_bytes_per_ns = 0.8, .latency_ns = 9'000});
  s.network.overhead_ns = 1'300;
  s.network.overhead_ns_per_byte = 0.07;
  s.network.add_ns_per_byte = 0.03;
  s.network.bf16_ns_per_byte = 0.11;
  s.network.fp16_ns_per_byte = 0.23;
  s.network.gap_ns = 50;
  s.cores.groups.assign(own.size(), {.cores = 2, .threads = 2});
  s.cores.group_of = own;
  s.cores.loss = 1.3;
  s.work.in_turn = true;
  s.work.of_kind = {{RG_OP_APPLY, 0.21}};
  s.compute = [](std::uint32_t, std::uint64_t step, compute_times& t) {
    t.before = 1'000;
    t.forward = {3'000, 2'000, 1'000};
    t.backward = {9'000 + step * 100, 5'000, 4'000};
  };
}

void folded_equals_whole(simulation_setup s, std::uint32_t most_simulated) {
  s.fold = folding::off;
  const simulation_result whole = simulate(plugins(), s);
  for (const folding fold : {folding::on, folding::checked}) {
    CAPTURE(fold == folding::checked);
    s.fold = fold;
    const simulation_result r = simulate(plugins(), s);
    CHECK(r.whole == "");
    CHECK(!r.rounded);
    CHECK(r.simulated <= most_simulated * (fold == folding::checked ? 2 : 1));
    CHECK(r.steps == whole.steps);
    CHECK(r.virtual_ns == whole.virtual_ns);
    CHECK(r.left_over == 0);
    for (std::size_t k = 0; k < r.counted.size(); ++k) {
      CHECK(r.counted[k].messages_sent == whole.counted[k].messages_sent);
      CHECK(r.counted[k].bytes_sent == whole.counted[k].bytes_sent);
      CHECK(r.counted[k].messages_received == whole.counted[k].messages_received);
      CHECK(r.counted[k].bytes_received == whole.counted[k].bytes_received);
    }
  }
}

} // namespace

TEST_CASE("one worker and one server stand for all of a parameter server") {
  for (const auto& [workers, servers] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {2, 1}, {2, 4}, {8, 2}, {16, 8}, {60, 4}, {64, 16}})
    for (const char* wire : {"fp32", "bf16"})
      for (const bool early : {true, false}) {
        CAPTURE(workers);
        CAPTURE(servers);
        CAPTURE(wire);
        simulation_setup s = ghosts("sync_ps", workers, servers);
        s.parameters["wire"] = wire;
        s.parameters["early"] = early;
        folded_equals_whole(s, 2);
      }
}

TEST_CASE("with links at both ends, overheads and computing times as well") {
  for (const auto& [workers, servers] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{{2, 2}, {16, 4}, {64, 8}})
    for (const char* wire : {"fp32", "bf16", "fp16"}) {
      CAPTURE(workers);
      CAPTURE(wire);
      simulation_setup s = ghosts("sync_ps", workers, servers);
      s.parameters["wire"] = wire;
      predict(s);
      s.fold = folding::off;
      const auto whole = simulate(plugins(), s);
      s.fold = folding::checked;
      const auto folded = simulate(plugins(), s);
      CHECK(folded.whole == "");
      CHECK(folded.simulated == 4);
      // Workers say goodbye to one server after the other, which is when servers differ.
      CHECK(folded.steps == whole.steps);
    }
}

TEST_CASE("a straggler and a slow link are classes of their own") {
  simulation_setup s = ghosts("sync_ps", 16, 4);
  s.straggler_ns = 400'000;
  folded_equals_whole(s, 3);
  s.late_ns = 150'000;
  folded_equals_whole(s, 4);
  s = ghosts("sync_ps", 16, 4);
  s.compute_kinds.assign(16, 0);
  s.compute_kinds[3] = s.compute_kinds[9] = 1;
  s.compute = [](std::uint32_t worker, std::uint64_t, compute_times& t) {
    t.forward.assign(3, worker == 3 || worker == 9 ? 50'000 : 1'000);
    t.backward.assign(3, 2'000);
  };
  folded_equals_whole(s, 3);
  predict(s);
  s.network.overhead_ns = s.network.gap_ns = 0;
  s.network.overhead_ns_per_byte = s.network.add_ns_per_byte = 0;
  s.compute_kinds.clear();
  s.network.links[5].out_bytes_per_ns = 0.2;
  s.network.links[17].in_bytes_per_ns = 0.3; // a server's
  folded_equals_whole(s, 4);
  s.network.links[17] = s.network.links[16];
  s.cores.groups[7] = {.cores = 4, .threads = 2};
  folded_equals_whole(s, 4);
}

TEST_CASE("a worker with a server on its rank is a class as well") {
  for (const std::uint32_t servers : {2, 4, 16}) {
    CAPTURE(servers);
    simulation_setup s = ghosts("sync_ps", 16, servers);
    s.colocate = true;
    folded_equals_whole(s, servers < 16 ? 2 : 1);
  }
}

TEST_CASE("one worker stands for all of a ring, and of halving and doubling, in either order of links") {
  const std::vector<std::pair<const char*, std::map<std::string, nlohmann::json>>> all = {
      {"allreduce", {{"algorithm", "ring"}, {"lanes", 2}}},
      {"allreduce", {{"algorithm", "ring"}, {"wire", "bf16"}}},
      {"allreduce", {{"algorithm", "halving_doubling"}}},
      {"allreduce", {{"algorithm", "recursive_doubling"}}},
      {"local_sgd", {{"k", 2}}}};
  for (const auto& [strategy, parameters] : all)
    for (const std::uint32_t workers : {2, 8, 64})
      for (const link_order order : {link_order::in_turn, link_order::shared})
        for (const bool predicted : {false, true}) {
          CAPTURE(strategy);
          CAPTURE(parameters);
          CAPTURE(workers);
          CAPTURE(predicted);
          simulation_setup s = ghosts(strategy, workers);
          for (const auto& [key, value] : parameters) s.parameters[key] = value;
          s.network.order = order;
          if (predicted) predict(s);
          folded_equals_whole(s, 1);
        }
}

// Cores for ranks on hosts: each rank has its own; those of a host share theirs, which suffice or not; or they compute on
// a device, and their messages and operations wait for a core.
enum class cores_of { ranks, idle_hosts, busy_hosts, hosts_with_devices };

void share_cores(simulation_setup& s, cores_of which) {
  if (which == cores_of::ranks) return;
  const auto ranks = static_cast<double>(s.link_of.size()) / static_cast<double>(s.network.links.size());
  s.cores.group_of = s.link_of;
  s.cores.groups.assign(s.network.links.size(), {.cores = which == cores_of::idle_hosts ? 4 * ranks : ranks / 2 + 1,
                                                 .threads = which == cores_of::hosts_with_devices ? 0.0 : 2.0});
}

TEST_CASE("the ranks of one host stand for those of all others") {
  const std::vector<std::pair<const char*, std::map<std::string, nlohmann::json>>> all = {
      {"allreduce", {{"algorithm", "ring"}, {"lanes", 2}}},
      {"allreduce", {{"algorithm", "hierarchical"}, {"lanes", 2}}},
      {"allreduce", {{"algorithm", "hierarchical"}, {"wire", "bf16"}}},
      {"allreduce", {{"algorithm", "halving_doubling"}}},
      {"allreduce", {{"algorithm", "halving_doubling"}, {"wire", "fp16"}}},
      {"allreduce", {{"algorithm", "recursive_doubling"}}},
      {"allreduce", {{"algorithm", "sharded"}}},
      {"local_sgd", {{"k", 2}}},
      {"dgc", {{"exchange", "all_gather"}}}};
  for (const auto& [strategy, parameters] : all)
    for (const std::uint32_t hosts : {2, 4, 16})
      for (const std::uint32_t on_each : {1, 2, 4, 8})
        for (const cores_of cores :
             {cores_of::ranks, cores_of::idle_hosts, cores_of::busy_hosts, cores_of::hosts_with_devices}) {
          if (hosts * on_each > 64) continue;
          CAPTURE(strategy);
          CAPTURE(parameters);
          CAPTURE(hosts);
          CAPTURE(on_each);
          CAPTURE(static_cast<int>(cores));
          simulation_setup s = ghosts(strategy, hosts * on_each);
          if (s.strategy == "dgc") s.parameters.clear();
          for (const auto& [key, value] : parameters) s.parameters[key] = value;
          predict(s, hosts);
          share_cores(s, cores);
          folded_equals_whole(s, on_each);
        }
}

TEST_CASE("the ranks of a host may differ, if those of the other hosts do likewise") {
  for (const char* algorithm : {"ring", "hierarchical", "halving_doubling"}) {
    CAPTURE(algorithm);
    simulation_setup s = ghosts("allreduce", 16);
    s.parameters["algorithm"] = algorithm;
    predict(s, 4);
    s.compute_kinds = {0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0};
    s.compute = [kinds = s.compute_kinds](std::uint32_t worker, std::uint64_t, compute_times& t) {
      t.forward.assign(3, 1'000);
      t.backward.assign(3, kinds[worker] ? 20'000 : 2'000);
    };
    folded_equals_whole(s, 4);
    s.fold = folding::on;
    s.compute_kinds[15] = 1;
    CHECK(simulate(plugins(), s).whole == "hosts differ");
    CHECK(simulate(plugins(), s).simulated == 16);
  }
}

TEST_CASE("one host of each kind stands for the others of a parameter server") {
  simulation_setup s = ghosts("sync_ps", 32, 4);
  for (const cores_of cores : {cores_of::ranks, cores_of::busy_hosts, cores_of::hosts_with_devices}) {
    CAPTURE(static_cast<int>(cores));
    predict(s, 8); // 4 workers on each, and on every other one a server
    s.network.overhead_ns = s.network.gap_ns = 0;
    s.network.add_ns_per_byte = 0;
    share_cores(s, cores);
    folded_equals_whole(s, 9);
    s.network.links[3].out_bytes_per_ns = 0.5; // no server
    s.network.links[6].out_bytes_per_ns = 0.5; // a server
    folded_equals_whole(s, 18);
  }
  // Two servers on each of two hosts of their own.
  for (const cores_of cores : {cores_of::ranks, cores_of::hosts_with_devices}) {
    predict(s, 8);
    s.network.overhead_ns = s.network.gap_ns = 0;
    for (std::uint32_t k = 0; k < 4; ++k) s.link_of[32 + k] = 8 + k / 2;
    s.network.links.resize(10, s.network.links[0]);
    share_cores(s, cores);
    folded_equals_whole(s, 6);
  }
}

TEST_CASE("workers on hosts with unequal numbers of them") {
  simulation_setup s = ghosts("allreduce", 10);
  s.parameters["algorithm"] = "ring";
  predict(s, 4); // 3, 2, 3 and 2 workers
  s.fold = folding::on;
  simulation_result r = simulate(plugins(), s);
  CHECK(r.whole == "hosts differ");
  CHECK(r.simulated == 10);
  s.strategy = "sync_ps";
  s.parameters.erase("algorithm");
  s.servers = 1;
  predict(s, 4);
  s.link_of[10] = 4; // a host of its own
  s.network.links.resize(5, s.network.links[0]);
  r = simulate(plugins(), s);
  CHECK(r.whole == "");
  CHECK(r.simulated == 3 + 2 + 1);
}

TEST_CASE("ranks on one host send over no link that they share") {
  for (const char* strategy : {"allreduce", "sync_ps"}) {
    CAPTURE(strategy);
    simulation_setup s = ghosts(strategy, 8, strategy == std::string("sync_ps") ? 1 : 0);
    if (s.strategy == "allreduce") s.parameters["algorithm"] = "ring";
    predict(s, 1);
    s.network.overhead_ns = 0;
    folded_equals_whole(s, s.strategy == "sync_ps" ? 2 : 1);
    share_cores(s, cores_of::busy_hosts);
    s.fold = folding::on;
    CHECK(simulate(plugins(), s).whole == "all ranks share links or cores");
  }
}

TEST_CASE("a sharded update: all to all, and workers that differ are classes") {
  for (const std::uint32_t workers : {2, 16, 64}) {
    CAPTURE(workers);
    simulation_setup s = ghosts("allreduce", workers);
    s.parameters["algorithm"] = "sharded";
    folded_equals_whole(s, 1);
    s.straggler_ns = 90'000;
    folded_equals_whole(s, 2);
    s.optimizer.clip_norm = 1; // norms are summed by halving and doubling
    s.fold = folding::on;
    CHECK(simulate(plugins(), s).simulated == workers);
  }
}

namespace {

// Tensors of multiples of 16 x 60 and of 16 x 64 elements, of which `dgc` sends the second one dense. Each rank copies a
// bucket in two parts, divided elsewhere: here each copy takes whole ns, and copies of a rank do not overlap.
simulation_setup evenly_cut_for_60(const char* strategy, std::uint32_t workers,
                                   const std::map<std::string, nlohmann::json>& parameters) {
  simulation_setup s = ghosts(strategy, workers);
  s.tensors = {4 * 76'800, 76'800, 3 * 76'800};
  s.parameters = parameters;
  s.parameters.emplace(s.strategy == "dgc" ? "dense_below" : "bucket", s.strategy == "dgc" ? 100'000 : 4 * 76'800 * 4);
  s.work.in_turn = true;
  return s;
}

} // namespace

TEST_CASE("circulant, and dgc: one worker or host stands for all, whatever their number") {
  const std::vector<std::pair<const char*, std::map<std::string, nlohmann::json>>> all = {
      {"allreduce", {{"algorithm", "circulant"}, {"lanes", 2}}},
      {"allreduce", {{"algorithm", "circulant"}, {"wire", "bf16"}}},
      {"dgc", {}},
      {"dgc", {{"rampup_begin_step", 1}, {"lanes", 1}}}};
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> of_each = {{2, 1},  {3, 1},  {5, 1},  {12, 1}, {60, 1},
                                                                        {64, 1}, {12, 4}, {60, 5}, {60, 12}};
  for (const auto& [strategy, parameters] : all)
    for (const auto& [workers, on_host] : of_each)
      for (const link_order order : {link_order::in_turn, link_order::shared})
        for (const bool predicted : {false, true}) {
          if (on_host > 1 && (!predicted || order == link_order::in_turn)) continue;
          CAPTURE(strategy);
          CAPTURE(parameters);
          CAPTURE(workers);
          CAPTURE(on_host);
          CAPTURE(predicted);
          simulation_setup s = evenly_cut_for_60(strategy, workers, parameters);
          s.network.order = order;
          if (predicted) predict(s, on_host > 1 ? workers / on_host : 0);
          for (core_group& g : s.cores.groups) g.cores = 3; // a copy takes none from computing
          s.fold = folding::on;
          if (s.strategy == "allreduce" && on_host > 1) // folded, it was up to 7 % too fast
            CHECK(simulate(plugins(), s).simulated == workers);
          else
            folded_equals_whole(s, on_host);
        }
}

// With the short backward pass, copies go on when computing has ended.
TEST_CASE("circulant, and dgc: the times are those of all ranks also if copies take cores from computing") {
  for (const char* strategy : {"allreduce", "dgc"})
    for (const std::uint32_t workers : {5, 12, 60})
      for (const std::uint64_t backward : {2'000, 2'000'000}) {
        CAPTURE(strategy);
        CAPTURE(workers);
        CAPTURE(backward);
        simulation_setup s = evenly_cut_for_60(strategy, workers, {});
        if (s.strategy == "allreduce") s.parameters["algorithm"] = "circulant";
        predict(s);
        s.compute = [backward](std::uint32_t, std::uint64_t, compute_times& t) {
          t.forward.assign(3, backward / 2);
          t.backward.assign(3, backward);
        };
        const simulation_result whole = simulate(plugins(), s);
        s.fold = folding::on;
        const simulation_result folded = simulate(plugins(), s);
        CHECK(folded.simulated == 1);
        CHECK(folded.virtual_ns == whole.virtual_ns);
        CHECK(folded.steps == whole.steps);
      }
}

TEST_CASE("dgc of a thousand workers, whose dense tensors cannot be cut evenly") {
  simulation_setup s = evenly_cut_for_60("dgc", 1000, {});
  predict(s);
  s.fold = folding::checked;
  const auto r = simulate(plugins(), s);
  CHECK(r.simulated == 2);
  CHECK(r.rounded);
  CHECK(r.left_over == 0);
  REQUIRE(r.counted.size() == 1000);
  for (const auto& c : r.counted) CHECK(c.messages_sent == s.steps * (2 * 999 + 2 * 10));
}

TEST_CASE("chunks of different lengths are taken to be equal, and the result says so") {
  simulation_setup s = ghosts("allreduce", 48);
  s.parameters["algorithm"] = "ring";
  const auto whole = simulate(plugins(), s);
  s.fold = folding::checked;
  const auto folded = simulate(plugins(), s);
  CHECK(folded.rounded);
  CHECK(folded.simulated == 2);
  const double error = static_cast<double>(folded.virtual_ns) / static_cast<double>(whole.virtual_ns) - 1;
  CHECK(std::abs(error) < 0.02);
}

TEST_CASE("a strategy that declares a symmetry which it does not have is caught") {
  const registry own = registry({REGATTA_TEST_STRATEGIES}).loading();
  for (const char* broadcast : {"tree", "scatter_gather"}) {
    simulation_setup s = ghosts("rooted", 8);
    s.parameters = {{"broadcast", broadcast}, {"lies", true}};
    s.fold = folding::checked;
    CHECK_THROWS_WITH_AS(simulate(own, s),
                         doctest::Contains("strategy rooted says that ranks 0 and 7 are alike (rg_plan.symmetry), but"),
                         failure);
  }
}

TEST_CASE("a strategy whose hosts are not alike is caught") {
  const registry own = registry({REGATTA_TEST_STRATEGIES}).loading();
  for (const char* broadcast : {"tree", "scatter_gather"}) {
    simulation_setup s = ghosts("rooted", 12);
    s.parameters = {{"broadcast", broadcast}, {"lies", true}};
    predict(s, 4);
    s.fold = folding::checked;
    CHECK_THROWS_WITH_AS(simulate(own, s), doctest::Contains("are alike (rg_plan.symmetry), but rank"), failure);
  }
}

TEST_CASE("where one rank cannot stand for the others, all are simulated") {
  const auto all_are = [](const registry& strategies, simulation_setup s, const char* why) {
    s.fold = folding::off;
    const simulation_result whole = simulate(strategies, s);
    s.fold = folding::on;
    const simulation_result r = simulate(strategies, s);
    CAPTURE(r.whole);
    CHECK(r.whole.starts_with("the folded simulation failed: "));
    CHECK(r.whole.find(why) != std::string::npos);
    CHECK(r.simulated == whole.simulated);
    CHECK(r.steps == whole.steps);
    CHECK(r.virtual_ns == whole.virtual_ns);
  };
  // A last bucket of 4 chunks for 8 servers: half of them get none. (It is longer than an eighth of a bucket, or it would
  // belong to the one before.)
  simulation_setup s = ghosts("sync_ps", 8, 8);
  s.parameters["bucket"] = 1024;
  s.tensors.push_back(64);
  for (const bool colocate : {true, false}) {
    CAPTURE(colocate);
    s.colocate = colocate;
    all_are(plugins(), s, "a deadlock");
  }
  // No deadlock shows that rank 0 is unlike the others: what it sends is delivered to it as rank 7's message.
  s = ghosts("one_message", 8);
  s.parameters.clear();
  all_are(registry({REGATTA_TEST_STRATEGIES}).loading(), s, "have no receive");
}

TEST_CASE("simulations in several threads do not disturb each other") {
  simulation_setup s = ghosts("sync_ps", 16, 4);
  predict(s);
  const simulation_result alone = simulate(plugins(), s);
  std::vector<std::future<simulation_result>> others;
  for (int k = 0; k < 4; ++k) others.push_back(std::async(std::launch::async, [&] { return simulate(plugins(), s); }));
  for (auto& o : others) CHECK(o.get().steps == alone.steps);
}

TEST_CASE("figures for another number of ranks, tensors or links are refused") {
  const auto refused = [](const auto& change, const char* text) {
    simulation_setup s = ghosts("sync_ps", 4, 2);
    predict(s);
    change(s);
    CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains(text), std::exception);
  };
  refused([](auto& s) { s.compute_kinds = {0, 1}; }, "compute_kinds: expected 4, one for each worker, got 2");
  refused([](auto& s) { s.link_of.pop_back(); }, "link_of: expected 6, one for each rank, got 5");
  refused([](auto& s) { s.cores.group_of.pop_back(); }, "cores: expected a group for each of 6 ranks, below 6");
  refused([](auto& s) { s.cores.group_of[3] = 6; }, "cores: expected a group for each of 6 ranks, below 6");
  refused([](auto& s) { s.network.tiers = {{{0, 1}, 1}}; }, "tiers: group_of: expected 6, one for each link, got 2");
  refused([](auto& s) { s.link_of[3] = 6; }, "link_of: rank 3 has link 6, of 6: expected a smaller number");
  refused([](auto& s) { s.compute = [](std::uint32_t, std::uint64_t, compute_times& t) { t.backward.pop_back(); }; },
          "compute: expected 3 forward and 3 backward times, one for each tensor, got 3 and 2");
}

TEST_CASE("ranks that are not alike are all simulated, and the result says why") {
  const auto why = [](const simulation_setup& x) {
    simulation_setup s = x;
    s.fold = folding::on;
    const auto r = simulate(plugins(), s);
    CHECK(r.simulated == r.counted.size());
    return r.whole;
  };
  simulation_setup s = ghosts("sync_ps", 4, 2);
  s.network.order = link_order::in_turn;
  CHECK(why(s) == "links serve the messages of a time in turn");
  s = ghosts("sync_ps", 4, 2);
  s.ghosts = false;
  CHECK(why(s) == "ranks have bytes");
  s = ghosts("sync_ps", 4, 2);
  s.network.eager = false;
  CHECK(why(s) == "the transport is not eager");
  s = ghosts("sync_ps", 4, 2);
  s.hosts = 2;
  s.network.links.assign(2, {});
  s.network.add_ns_per_byte = 0.1;
  CHECK(why(s) == "servers are on hosts of workers, and a receive that adds takes longer");
  s = ghosts("sync_ps", 4, 2);
  predict(s);
  s.network.tiers = {{{0, 0, 0, 1, 1, 1}, 1}};
  CHECK(why(s) == "switches have tiers");
  s.network.tiers.clear();
  s.network.links[2].jitter_ns = 10;
  CHECK(why(s) == "links have jitter");
  s = ghosts("sync_ps", 4, 2);
  s.cores.groups.assign(2, {});
  s.cores.group_of = {0, 0, 0, 0, 0, 0};
  CHECK(why(s) == "all ranks share links or cores");
  s = ghosts("allreduce", 4);
  s.parameters["algorithm"] = "ring";
  s.straggler_ns = 1000;
  CHECK(why(s) == "workers differ");
  s.network.order = link_order::in_turn;
  s.parameters["algorithm"] = "hierarchical";
  s.hosts = 2;
  CHECK(why(s) == "links serve the messages of a time in turn");
  s.network.order = link_order::shared;
  CHECK(why(s) == "hosts differ"); // the straggler
  s.parameters["algorithm"] = "auto";
  CHECK(why(s) == "strategy allreduce declares no symmetry");
}

TEST_CASE("thousands of workers") {
  simulation_setup s = ghosts("sync_ps", 4000, 40);
  predict(s);
  s.steps = 2;
  s.fold = folding::checked;
  const auto r = simulate(plugins(), s);
  CHECK(r.simulated == 4);
  CHECK(r.counted.size() == 4040);
  CHECK(r.steps.size() == 4000);
  const std::uint64_t parts = 40 * 2 * s.steps; // of two buckets
  for (const std::uint32_t w : {0, 1, 3999}) {
    CHECK(r.counted[w].messages_sent == parts + 40); // and goodbyes
    CHECK(r.counted[w].messages_received == parts);
  }
  for (const std::uint32_t server : {4000, 4039}) CHECK(r.counted[server].messages_sent == parts / 40 * 4000);
}
