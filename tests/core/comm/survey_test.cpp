// SPDX-License-Identifier: Apache-2.0
//
// Which pairs of many ranks are measured, and whom preflight suspects then: on a simulated network whose pairs disturb
// each other, as test hosts that share two cores do.
#include "comm/preflight.hpp"
#include "comm/survey.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace regatta::comm;
using nlohmann::json;

namespace {

constexpr std::uint32_t many = 64;

// Links of 25 MB/s and 20 us. All pairs at once share `capacity` bytes/s, of which each gets a random share; one alone
// sometimes gets less, too.
struct network {
  explicit network(unsigned seed) : random(seed) {}

  rank_link measure(std::uint32_t from, std::uint32_t to, double fair) {
    const auto uniform = [&](double least, double most) { return std::uniform_real_distribution(least, most)(random); };
    double rate = 25e6 * uniform(0.97, 1);
    if (slow_hosts.contains(from) || slow_hosts.contains(to)) rate /= 2;
    if (slow_links.contains({from, to})) rate /= 2;
    if (const double share = fair * uniform(0.3, 1.7); share < rate) rate = share;
    if (uniform(0, 1) < disturbed) rate *= uniform(0.3, 1);
    const double lost = lossy_hosts.contains(from) ? 0.04 : 0;
    return {from, to, 20e-6 * uniform(1, 1.2) * std::max(1.0, 25e6 / fair), rate, 1000, 1000 * lost};
  }
  measured_rounds run(const std::vector<round_of_pairs>& rounds) {
    measured_rounds m;
    for (const round_of_pairs& round : rounds) {
      std::set<std::uint32_t> busy;
      for (const auto& [a, b] : round) {
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        const double fair = capacity / static_cast<double>(round.size());
        m.links.push_back(measure(a, b, fair));
        m.links.push_back(measure(b, a, fair));
      }
      if (round.size() > 1) widest = std::max(widest, round.size());
      m.seconds += seconds;
    }
    turns += rounds.size();
    return m;
  }
  survey surveyed() {
    plan p;
    p.ranks = many;
    for (std::uint32_t r = 0; r < many; ++r) p.host_of.push_back(r);
    p.pairs = preflight_pairs(many);
    return survey_links(
        p, [](const rank_pair&) { return true; },
        [this](const std::vector<round_of_pairs>& rounds, const char*, effort) { return run(rounds); });
  }

  std::mt19937 random;
  double capacity = 250e6, disturbed = 0.02, seconds = 0.1;
  std::set<std::uint32_t> slow_hosts, lossy_hosts;
  std::set<rank_pair> slow_links; // from, to
  std::size_t widest = 0, turns = 0;
};

// Returns "HOST...: CHECK" of each suspect, separated by commas.
std::string suspects_of(const survey& s) {
  plan p;
  p.ranks = many;
  p.counts = {2, 1 << 18};
  p.pairs.many = true;
  std::vector<host_facts> facts;
  std::vector<json> results;
  for (std::uint32_t h = 0; h < many; ++h) {
    p.host_of.push_back(h);
    facts.push_back({"n" + std::to_string(h), {{"cpu", "A"}, {"cores", 8}}, nullptr, nullptr});
    survey of_rank = s;
    for (auto* links : {&of_rank.alone, &of_rank.at_once})
      std::erase_if(*links, [h](const rank_link& l) { return l.from != h; });
    json& r = results.emplace_back(of_rank);
    r["host"] = {{"fma", 1e11},
                 {"copy", 1e10},
                 {"cpu_share", 1.0},
                 {"throttled", 0.0},
                 {"interface", "e0"},
                 {"subnet", "10.0.0.0/8"},
                 {"mtu", 1500},
                 {"from", json(many, nullptr)},
                 {"devices", json::array()}};
  }
  std::string all;
  const json document = preflight_of(p, facts, results);
  for (const json& suspect : document.at("suspects")) {
    for (const std::string host : suspect.at("hosts")) all += (all.empty() || all.back() == ' ' ? "" : " ") + host;
    all += ":" + suspect.at("check").get<std::string>() + " ";
  }
  return all;
}

} // namespace

TEST_CASE("rounds are divided and packed without using a rank twice") {
  const auto rounds = divided(tournament(8), 3);
  CHECK(rounds.size() == 14); // 7 rounds of 4 pairs: of 3 and of 1
  CHECK(rounds[0].size() == 3);
  CHECK(rounds[1].size() == 1);
  const auto some = packed({{0, 1}, {0, 2}, {3, 4}, {5, 6}, {1, 7}}, 2);
  REQUIRE(some.size() == 3);
  CHECK(some[0] == round_of_pairs{{0, 1}, {3, 4}});
  CHECK(some[1] == round_of_pairs{{0, 2}, {5, 6}});
  CHECK(some[2] == round_of_pairs{{1, 7}});
  CHECK(sample(tournament(64), 3).size() == 3);
  CHECK(sample(tournament(3), 5).size() == 3);
  CHECK(across_halves(5) == round_of_pairs{{0, 2}, {1, 3}});
  CHECK(of_neighbours(5) == round_of_pairs{{0, 1}, {2, 3}});
}

TEST_CASE("ends of bad links: those with most, not the ranks that met two of them") {
  // 0 and 1 are slow; 2 was measured with both of them and with 3.
  const std::vector<rank_pair> bad = {{0, 2}, {0, 4}, {0, 5}, {1, 2}, {1, 6}, {1, 7}};
  std::vector<rank_pair> measured = bad;
  measured.emplace_back(3, 2);
  const auto found = bad_ends(bad, measured, 8);
  REQUIRE(found.size() == 2);
  CHECK(found[0].rank == 0);
  CHECK(found[0].sends);
  CHECK(found[1].rank == 1);
  CHECK(found[1].bad == 3);
  CHECK(found[1].measured == 3);
  CHECK(bad_ends({{0, 1}}, {{0, 1}, {1, 0}}, 8).empty()); // one link says nothing about a rank
}

TEST_CASE("of 64 ranks, all pairs are measured at once, as many as reach their rates, and some alone") {
  network n(1);
  const survey s = n.surveyed();
  CHECK(s.pairs == 2016);
  CHECK(s.at_once.size() == 2 * s.pairs);
  CHECK(s.pairs_at_once == 8); // of 25 MB/s each, with 250 MB/s in all
  CHECK(s.rate_at_once >= 0.7);
  CHECK(n.widest == 32); // of the bisections
  CHECK(s.halves < 250e6);
  CHECK(s.alone.size() >= 2 * 96);
  CHECK(n.turns < 700); // all pairs alone would take 2016
  network wide(1);
  wide.capacity = 1e12;
  CHECK(wide.surveyed().pairs_at_once == 32);
}

TEST_CASE("pairs at once take no longer than their limit") {
  network n(1);
  n.seconds = 1;
  const survey s = n.surveyed();
  CHECK(s.at_once.size() < 2 * s.pairs);
  CHECK(s.at_once.size() > 2 * 600);
  CHECK(suspects_of(s) == "");
}

TEST_CASE("of 64 healthy hosts, none is a suspect although pairs at once disturb each other") {
  for (unsigned seed = 0; seed < 5; ++seed) {
    network n(seed), noisy(seed), narrow(seed);
    CHECK(suspects_of(n.surveyed()) == "");
    noisy.disturbed = 0.29; // of the measurements of a pair alone, as on test hosts with other load beside them
    CHECK(suspects_of(noisy.surveyed()) == "");
    narrow.capacity = 30e6; // of all pairs together: hardly more than one pair needs
    CHECK(suspects_of(narrow.surveyed()) == "");
  }
}

TEST_CASE("of 64 hosts, the slow and the lossy ones are named, and slow links with both ends") {
  for (unsigned seed = 0; seed < 5; ++seed) {
    network host(seed), hosts(seed), link(seed), lossy(seed), both(seed);
    host.slow_hosts = {17};
    hosts.slow_hosts = {5, 6, 40};
    link.slow_links = {{20, 50}};
    lossy.lossy_hosts = {63};
    both.slow_hosts = {9};
    both.slow_links = {{11, 12}};
    CHECK(suspects_of(host.surveyed()) == "n17:bandwidth n17:bandwidth "); // sends and receives
    for (const char* name : {"n5:", "n6:", "n40:"})
      CHECK(suspects_of(hosts.surveyed()).find(name) != std::string::npos);
    CHECK(suspects_of(link.surveyed()) == "n20 n50:bandwidth ");
    CHECK(suspects_of(lossy.surveyed()) == "n63:loss ");
    CHECK(suspects_of(both.surveyed()) == "n9:bandwidth n9:bandwidth n11 n12:bandwidth ");
  }
}
