// SPDX-License-Identifier: Apache-2.0
//
// The order in which pairs are measured, which links are far off, and which hosts regatta preflight suspects.
#include "comm/links.hpp"
#include "comm/matrix.hpp"
#include "comm/outliers.hpp"
#include "comm/preflight.hpp"
#include "comm/survey.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace regatta::comm;
using nlohmann::json;

namespace {

// Links between all ranks: 10 us, 100 MB/s and a few per cent of noise, nothing lost.
std::vector<rank_link> equal_links(std::uint32_t ranks) {
  std::vector<rank_link> links;
  for (std::uint32_t from = 0; from < ranks; ++from)
    for (std::uint32_t to = 0; to < ranks; ++to)
      if (from != to) {
        const double noise = 1 + 0.01 * ((from * 7 + to * 3) % 5);
        links.push_back({from, to, 10e-6 * noise, 1e8 / noise, 1000, 0});
      }
  return links;
}

std::vector<std::uint32_t> own_hosts(std::uint32_t ranks) {
  std::vector<std::uint32_t> hosts(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) hosts[r] = r;
  return hosts;
}

// The results of hosts of one kind; `links` are those of the pairs alone.
struct launch_of_hosts {
  explicit launch_of_hosts(std::uint32_t n) : links(equal_links(n)) {
    p.ranks = n;
    p.counts = {2, 1 << 18};
    p.host_of = own_hosts(n);
    for (std::uint32_t h = 0; h < n; ++h) {
      facts.push_back({"n" + std::to_string(h),
                       {{"cpu", "A"}, {"cores", 8}, {"cgroup_cpus", nullptr}, {"gpus", json::array()}},
                       {{"program SHA-256", "aa"}},
                       {{"/lib/tcp.so", "bb"}}});
      json from = json::array();
      for (std::uint32_t f = 0; f < n; ++f)
        from.push_back(f == h ? json(nullptr) : json{{"small", true}, {"large", true}});
      hosts.push_back({{"fma", 1e11 * (1 + 0.01 * (h % 3))},
                       {"copy", 1e10},
                       {"cpu_share", 1.0},
                       {"throttled", 0.0},
                       {"interface", "eth0"},
                       {"subnet", "10.0.0.0/24"},
                       {"mtu", 1500},
                       {"from", from},
                       {"devices", json::array()}});
    }
  }
  json document() const {
    std::vector<json> results;
    for (std::uint32_t h = 0; h < p.ranks; ++h) {
      std::vector<rank_link> mine;
      for (const rank_link& l : links)
        if (l.from == h) mine.push_back(l);
      json& r = results.emplace_back(survey{.alone = mine});
      r["host"] = hosts[h];
    }
    return preflight_of(p, facts, results);
  }
  // Returns "HOST...: CHECK" of each suspect, separated by commas.
  std::string suspects() const {
    std::string all;
    const json found = document();
    for (const json& s : found.at("suspects")) {
      std::string text;
      for (const std::string host : s.at("hosts")) text += (text.empty() ? "" : " ") + host;
      all += (all.empty() ? "" : ", ") + text + ": " + s.at("check").get<std::string>();
    }
    return all;
  }
  plan p;
  std::vector<host_facts> facts;
  std::vector<json> hosts;
  std::vector<rank_link> links;
};

} // namespace

TEST_CASE("a tournament has every pair once, and no rank twice in a round") {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 9U, 64U}) {
    std::set<rank_pair> seen;
    const auto rounds = tournament(ranks);
    CHECK(rounds.size() == (ranks % 2 ? ranks : ranks - 1));
    for (const auto& round : rounds) {
      std::set<std::uint32_t> busy;
      for (const auto& [a, b] : round) {
        CHECK(a < b);
        CHECK(b < ranks);
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        CHECK(seen.insert({a, b}).second);
      }
    }
    CHECK(seen.size() == ranks * (ranks - 1) / 2);
    CHECK(one_by_one(rounds).size() == seen.size());
  }
}

TEST_CASE("equal links are not marked, and a slow one is, in its direction") {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 8U}) {
    auto links = equal_links(ranks);
    CHECK(marks_of(links, own_hosts(ranks)).empty());
    for (rank_link& l : links)
      if (l.from == 0 && l.to == 1) l.bandwidth = 5e7;
    const auto marks = marks_of(links, own_hosts(ranks));
    REQUIRE(marks.size() == 1);
    CHECK(marks[0].figure == link_figure::bandwidth);
    CHECK(marks[0].from == 0);
    CHECK(marks[0].to == 1);
    CHECK(!marks[0].within);
  }
}

TEST_CASE("links within hosts are compared among themselves") {
  auto links = equal_links(8);
  const std::vector<std::uint32_t> hosts = {0, 0, 1, 1, 2, 2, 3, 3};
  for (rank_link& l : links)
    if (hosts[l.from] == hosts[l.to]) l.bandwidth *= 50;
  CHECK(marks_of(links, hosts).empty());
  for (rank_link& l : links)
    if (l.from == 4 && l.to == 5) l.bandwidth = 1e8; // usual between hosts, but not within
  const auto marks = marks_of(links, hosts);
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].within);
}

TEST_CASE("measurements of one link keep the best and count all segments") {
  std::vector<rank_link> all;
  merge(all, {0, 1, 3e-6, 1e8, 100, 2});
  merge(all, {0, 1, 2e-6, 5e7, 100, 0});
  REQUIRE(all.size() == 1);
  CHECK(all[0].latency == 2e-6);
  CHECK(all[0].bandwidth == 1e8);
  CHECK(figure_of(all[0], link_figure::loss) == doctest::Approx(0.01));
}

TEST_CASE("rates are low only beyond 15 % and the spread of the others") {
  CHECK(!outlier_rule({100, 101, 99, 100}).is_low(86));
  CHECK(outlier_rule({100, 101, 99, 100}).is_low(84));
  CHECK(!outlier_rule({100, 140, 60, 120, 80}).is_low(60)); // so noisy that nothing can be said
}

TEST_CASE("healthy hosts are no suspects") {
  for (const std::uint32_t n : {1U, 2U, 3U, 8U}) CHECK(launch_of_hosts(n).suspects() == "");
}

TEST_CASE("one fault makes one suspect") {
  for (const std::uint32_t n : {3U, 4U, 8U}) {
    launch_of_hosts slow(n), lossy(n), throttled(n), small(n), elsewhere(n), other(n), plugin(n), hole(n);
    for (rank_link& l : slow.links)
      if (l.from == 2 || l.to == 2) l.bandwidth /= 2;
    for (rank_link& l : lossy.links)
      if (l.from == 2) l.retransmitted = 30;
    throttled.hosts[2]["fma"] = 6e10;
    small.hosts[2]["mtu"] = 1300;
    elsewhere.hosts[2]["subnet"] = "10.1.0.0/24";
    other.facts[2].program["program SHA-256"] = "cc";
    plugin.facts[2].plugins["/lib/tcp.so"] = nullptr;
    for (std::uint32_t h = 0; h < n; ++h)
      if (h != 2) hole.hosts[2]["from"][h]["large"] = false;
    CHECK(slow.suspects() == "n2: bandwidth, n2: bandwidth"); // in both directions
    CHECK(lossy.suspects() == "n2: loss");
    CHECK(throttled.suspects() == "n2: compute");
    CHECK(small.suspects() == "n2: mtu");
    CHECK(elsewhere.suspects() == "n2: interface");
    CHECK(other.suspects() == "n2: program");
    CHECK(plugin.suspects() == "n2: plugin");
    CHECK(hole.suspects() == "n2: path_mtu");
  }
}

TEST_CASE("one bad link names both ends, and so does any difference of two hosts") {
  launch_of_hosts cable(8), two(2);
  for (rank_link& l : cable.links)
    if (l.from == 1 && l.to == 4) l.bandwidth /= 3;
  CHECK(cable.suspects() == "n1 n4: bandwidth");
  two.hosts[1]["mtu"] = 1300;
  CHECK(two.suspects() == "n0 n1: mtu");
}

TEST_CASE("hosts of another kind are not compared in their rates") {
  launch_of_hosts mixed(8);
  for (const std::size_t h : {1U, 5U}) {
    mixed.facts[h].description["cpu"] = "B";
    mixed.hosts[h]["fma"] = 3e10;
  }
  CHECK(mixed.suspects() == "");
}

TEST_CASE("GPUs are in the table, and a note says why they are not timed") {
  launch_of_hosts n(4);
  const auto text_of = [&] {
    json document = n.document();
    document["context"] = {{"warnings", json::array()}};
    return preflight_text(document, true);
  };
  const char* const note = "note: GPUs are not timed: no executor plugin for them was found";
  CHECK(text_of().find("| - | - |") != std::string::npos);
  CHECK(text_of().find(note) == std::string::npos);
  for (host_facts& f : n.facts) f.description["gpus"] = json::array({"A GPU", "A GPU"});
  CHECK(text_of().find(note) != std::string::npos);
  json gpu = {{"kind", "cuda"},  {"index", 0},     {"error", nullptr},  {"absent", false},
              {"gemm", 50.4e12}, {"copy", 1.5e12}, {"before", nullptr}, {"during", nullptr}};
  for (json& host : n.hosts) host["devices"] = {gpu, gpu};
  CHECK(text_of().find(note) == std::string::npos);
  CHECK(n.suspects() == "");
  n.hosts[2]["devices"][1]["gemm"] = 35.2e12;
  CHECK(n.suspects() == "n2: gpu_compute");
  CHECK_MESSAGE(text_of().find("| 35.2 | 1500.0 |") != std::string::npos, text_of()); // the slowest of the host
}

TEST_CASE("a matrix has a row for each sender, and marks") {
  plan p;
  p.transport = "tcp";
  p.ranks = 3;
  p.counts = {2, 1 << 18};
  p.host_of = own_hosts(3);
  std::vector<json> results(3, {{"alone", json::array()}, {"at_once", json::array()}, {"host", nullptr}});
  for (rank_link l : equal_links(3)) {
    if (l.from == 1 && l.to == 2) l.bandwidth = 1e7;
    results[l.from]["alone"].push_back(l);
  }
  const json m = matrix_of(p, {"a", "b", "c"}, results);
  CHECK(m.at("at_once").is_null());
  CHECK(m.at("alone").at("bandwidth")[1][2] == 1e7);
  CHECK(m.at("alone").at("bandwidth")[1][1].is_null());
  CHECK(matrix_text(m).find("* far off: 1@b to 2@c: bandwidth 10 MB/s") != std::string::npos);
  CHECK(matrix_csv(json::array({m})).find("tcp,alone,1,b,2,c,") != std::string::npos);
}
