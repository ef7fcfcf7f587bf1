// SPDX-License-Identifier: Apache-2.0
//
// Operations of a simulation in GOAL: the text, and that its longest path takes as long as the simulation.
#include "matrix.hpp"

#include "simulator/goal_recorder.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <tuple>

using namespace regatta;
using namespace regatta::test;

namespace {

constexpr std::uint64_t latency = 9'000, overhead = 1'300, ns_per_byte = 8, elements = 1 << 16;

simulation_setup step_of(const char* strategy, const char* algorithm, std::uint32_t workers,
                         std::uint32_t servers = 0) {
  simulation_setup s;
  s.strategy = strategy;
  s.workers = workers;
  s.servers = servers;
  s.ghosts = true;
  s.steps = 2;
  s.tensors = {elements, elements};
  s.parameters["bucket"] = elements * 8;
  if (*algorithm) s.parameters["algorithm"] = algorithm;
  s.network.order = link_order::shared;
  s.link_of.resize(workers + servers);
  std::iota(s.link_of.begin(), s.link_of.end(), 0u);
  constexpr double rate = 1.0 / ns_per_byte;
  s.network.links.assign(workers + servers, {.out_bytes_per_ns = rate, .in_bytes_per_ns = rate, .latency_ns = latency});
  s.network.overhead_ns = overhead;
  s.work.in_turn = true;
  s.fold = folding::on; // ignored where operations are recorded
  return s;
}

struct operation {
  std::string kind;
  std::uint64_t size = 0;
  std::uint32_t peer = 0, tag = 0;
  std::vector<std::string> waits;
  std::uint64_t end = 0; // 0: unknown
};

struct schedule {
  std::vector<std::map<std::string, operation>> ranks;

  explicit schedule(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line, first; std::getline(lines, line);) {
      std::istringstream words(line);
      if (!(words >> first) || first == "//" || first == "num_ranks" || first == "}") continue;
      if (first == "rank") {
        ranks.emplace_back();
        continue;
      }
      std::string second, ignored;
      words >> second;
      if (second == "requires") {
        words >> ignored;
        REQUIRE(ranks.back().count(ignored) == 1); // a node before
        ranks.back().at(first).waits.push_back(ignored);
        continue;
      }
      operation o{.kind = second, .waits = {}};
      words >> o.size;
      if (second != "calc") words >> ignored >> ignored >> o.peer >> ignored >> o.tag; // "b to PEER tag TAG"
      REQUIRE(words);
      REQUIRE(ranks.back().emplace(first.substr(0, first.size() - 1), o).second);
    }
  }
  // Returns when an operation ends if every message has links for itself.
  std::uint64_t end_of(std::uint32_t rank, const std::string& label) {
    operation& o = ranks.at(rank).at(label);
    if (o.end) return o.end;
    std::uint64_t begin = 0;
    for (const std::string& w : o.waits) begin = std::max(begin, end_of(rank, w));
    if (o.kind == "calc") o.end = begin + o.size;
    if (o.kind == "send") o.end = begin + overhead + o.size * ns_per_byte;
    if (o.kind == "recv") o.end = std::max(begin, end_of(o.peer, sender_of(rank, o)) + latency + overhead);
    return o.end;
  }
  std::string sender_of(std::uint32_t rank, const operation& receive) {
    std::string found;
    for (const auto& [label, o] : ranks.at(receive.peer)) {
      if (o.kind != "send" || o.peer != rank || o.tag != receive.tag) continue;
      CHECK(found.empty()); // tags tell messages apart
      CHECK(o.size == receive.size);
      found = label;
    }
    REQUIRE(!found.empty());
    return found;
  }
  std::size_t count(std::uint32_t rank, const std::string& kind) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(ranks.at(rank), [&](const auto& o) { return o.second.kind == kind; }));
  }
};

std::pair<simulation_result, schedule> recorded(simulation_setup s) {
  goal_recorder recorder;
  s.recorder = &recorder;
  simulation_result r = simulate(plugins(), s);
  std::ostringstream text;
  recorder.write(text, s.workers + s.servers, "one\ntwo");
  CHECK(text.str().find("// one\n// two\nnum_ranks ") == 0);
  return {std::move(r), schedule(text.str())};
}

} // namespace

TEST_CASE("the longest path of a collective's operations is the simulated time") {
  for (const auto& [algorithm, workers] : std::vector<std::pair<const char*, std::uint32_t>>{
           {"ring", 4}, {"ring", 5}, {"halving_doubling", 8}, {"recursive_doubling", 8}, {"circulant", 6}}) {
    CAPTURE(algorithm);
    CAPTURE(workers);
    const simulation_setup s = step_of("allreduce", algorithm, workers);
    auto [result, goal] = recorded(s);
    CHECK(result.simulated == workers); // not folded
    REQUIRE(goal.ranks.size() == workers);
    std::uint64_t end = 0;
    for (std::uint32_t r = 0; r < workers; ++r)
      for (const auto& [label, o] : goal.ranks[r]) end = std::max(end, goal.end_of(r, label));
    CHECK(end == result.virtual_ns);
    for (std::uint32_t r = 0; r < workers; ++r) {
      CHECK(goal.count(r, "send") == result.counted[r].messages_sent);
      CHECK(goal.count(r, "recv") == result.counted[r].messages_received);
    }
  }
}

TEST_CASE("a server's answers wait for the messages of all workers") {
  constexpr std::uint32_t workers = 6;
  auto [result, goal] = recorded(step_of("sync_ps", "", workers, 1));
  constexpr std::uint32_t server = workers;
  std::size_t answers = 0;
  for (const auto& [label, o] : goal.ranks.at(server)) {
    if (o.kind != "send") continue;
    ++answers;
    std::set<std::string> before;
    std::vector<std::string> next = {label};
    while (!next.empty()) {
      const std::string n = next.back();
      next.pop_back();
      for (const std::string& w : goal.ranks[server].at(n).waits)
        if (before.insert(w).second) next.push_back(w);
    }
    std::set<std::uint32_t> peers;
    for (const std::string& b : before)
      if (goal.ranks[server].at(b).kind == "recv") peers.insert(goal.ranks[server].at(b).peer);
    CHECK(peers.size() == workers);
  }
  CHECK(answers >= workers * 2);
}

TEST_CASE("the text: times, tags by lane, joined causes, and messages that never arrive") {
  goal_recorder r;
  r.compute(0, 0, 100);
  r.send(0, 100, 7, 1, 1, 1024);  // waits for the computing
  r.send(0, 100, 8, 1, 1, 0);     // the next on its lane
  r.send(0, 100, 9, 1, 0, 5);     // never arrives
  r.work(0, 100, 0, 100);         // nothing
  r.receive(1, 0, 7, 0, 1, 4096); // longer than its message
  r.receive(1, 0, 8, 0, 1, 4096);
  r.receive(1, 0, 9, 0, 0, 4096); // never ends
  r.ended(0, 150, 7, 0);
  r.ended(1, 200, 7, 1024);
  r.ended(1, 200, 77, 1); // unknown
  r.work(1, 200, 30, 230);
  r.ended(1, 210, 8, 0);
  r.work(1, 210, 5, 235); // behind the one before
  r.compute(1, 240, 3);
  std::ostringstream out;
  r.write(out, 3, "");
  CHECK(out.str() == R"(num_ranks 3

rank 0 {
l1: calc 100
l2: send 1024b to 1 tag 1
l2 requires l1
l3: send 1b to 1 tag 3
l3 requires l1
l4: calc 0
l4 requires l1
}

rank 1 {
l1: recv 1024b from 0 tag 1
l2: recv 1b from 0 tag 3
l4: calc 30
l4 requires l1
l5: calc 5
l5 requires l2
l5 requires l4
l6: calc 3
l6 requires l4
l6 requires l5
}

rank 2 {
}
)");
  CHECK(!r.incomplete());
  r.collective();
  CHECK(r.incomplete());

  goal_recorder server;
  for (std::uint32_t w = 1; w <= 5; ++w) server.receive(0, 0, w, w, 0, 8);
  for (std::uint32_t w = 1; w <= 5; ++w) server.ended(0, 10, w, 8);
  for (std::uint32_t w = 1; w <= 5; ++w) server.send(0, 10, w, w, 0, 8);
  std::ostringstream joined;
  server.write(joined, 1, "");
  CHECK(joined.str().find("l6: calc 0\nl6 requires l1\nl6 requires l2\nl6 requires l3\nl6 requires l4\n"
                          "l6 requires l5\nl7: calc 0\nl7 requires l6\n") != std::string::npos);
}
