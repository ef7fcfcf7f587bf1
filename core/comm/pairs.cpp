// SPDX-License-Identifier: Apache-2.0
#include "comm/pairs.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>

#include "base/json.hpp"
#include "comm/host_checks.hpp"
#include "comm/links.hpp"
#include "comm/survey.hpp"
#include "results/statistics.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

constexpr double most_at_once = 32; // messages between two looks at the time
constexpr std::size_t most_messages = 1000;

// The TCP segments that this host has sent since it started; both 0 if they cannot be read.
struct segment_counters {
  double sent = 0, again = 0;
};

segment_counters read_segment_counters() {
  std::ifstream file("/proc/net/snmp"); // of this network namespace
  std::vector<std::string> names;
  segment_counters c;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Tcp:")) continue;
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    if (names.empty()) {
      names = row;
      continue;
    }
    for (std::size_t i = 1; i < std::min(names.size(), row.size()); ++i) {
      if (names[i] == "OutSegs") c.sent = std::strtod(row[i].c_str(), nullptr);
      if (names[i] == "RetransSegs") c.again = std::strtod(row[i].c_str(), nullptr);
    }
    break;
  }
  return c;
}

class pair_measuring {
public:
  pair_measuring(control_client& control, const plan& p, connection& c)
      : control_(control), report_(c.report()), plan_(p), values_({"pair", ""}, p.counts),
        strategy_(c.setup(values_.values, *std::ranges::max_element(p.counts))) {
    strategy_.start();
    report_.watch(strategy_);
  }
  ~pair_measuring() { report_.end_watch(); }
  pair_measuring(const pair_measuring&) = delete;
  pair_measuring& operator=(const pair_measuring&) = delete;

  // Measures all pairs of these rounds. Returns this rank's links.
  std::vector<rank_link> run(const std::vector<round_of_pairs>& rounds, const char* pass, effort e) {
    least_messages_ = e == effort::quick ? 1 : 3;
    std::vector<rank_link> mine;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const std::string name = fmt::format("{}: round {} of {}", pass, i + 1, rounds.size());
      control_.operation(name.c_str(), pace::rare);
      for (const auto& [a, b] : rounds[i]) {
        if (a == control_.rank()) mine.push_back(measure(b, true));
        if (b == control_.rank()) mine.push_back(measure(a, false));
      }
      control_.barrier("pairs");
    }
    return mine;
  }

private:
  // Both ranks of a pair call this. First the rank that leads times small messages, then large ones; then the other one
  // times its large ones, and takes the latency as the first one has measured it.
  rank_link measure(std::uint32_t peer, bool leads) {
    rank_link l{control_.rank(), peer};
    strategy_.gradients()[0] = 0;
    const auto small = times(peer, false, leads);
    if (leads) l.latency = regatta::median(small).value_or(0) / 2;
    strategy_.gradients()[1] = static_cast<float>(l.latency);
    once(peer, false, leads);
    if (!leads) l.latency = static_cast<double>(strategy_.weights()[1]);
    for (const bool first : {true, false}) {
      const bool sends = first == leads;
      const segment_counters before = read_segment_counters();
      const auto large = times(peer, true, sends);
      if (!sends) continue;
      const segment_counters after = read_segment_counters();
      l.segments = after.sent - before.sent;
      l.retransmitted = after.again - before.again;
      const double time = regatta::median(large).value_or(0);
      if (time > 0)
        l.bandwidth = static_cast<double>(plan_.counts[1] * sizeof(float)) / std::max(time - l.latency, time / 2);
    }
    return l;
  }

  // Exchanges messages and answers for about the time of the plan. Returns the seconds of each exchange, without
  // warm-up. The rank that leads says how many come next, in a message before them: on a link that loses packets, a few
  // messages may take seconds.
  std::vector<double> times(std::uint32_t peer, bool large, bool leads) {
    float& count = strategy_.gradients()[0];
    count = 0;
    once(peer, large, leads);
    std::vector<double> seconds;
    double sum = 0;
    for (;;) {
      if (leads) {
        const double mean = seconds.empty() ? 0 : sum / static_cast<double>(seconds.size());
        const double left = mean > 0 ? (plan_.pairs.seconds - sum) / mean : least_messages_;
        count = static_cast<float>(seconds.size() < most_messages && left >= 1 ? std::min(left, most_at_once) : 0);
      }
      once(peer, false, leads);
      const auto messages = static_cast<std::uint64_t>(leads ? count : strategy_.weights()[0]);
      if (messages == 0) return seconds;
      for (std::uint64_t i = 0; i < messages; ++i) {
        const std::int64_t start = rg::steady_ns();
        once(peer, large, leads);
        seconds.push_back(1e-9 * static_cast<double>(rg::steady_ns() - start));
        sum += seconds.back();
      }
    }
  }

  void once(std::uint32_t peer, bool large, bool leads) {
    strategy_.begin(strategy_host::end_step, step_of(pair_code(peer, large, leads), ++iteration_));
    const waiting_scope waits(control_.status(), waiting::peers);
    while (!strategy_.done(strategy_host::end_step)) report_.poll(strategy_, plan_.spin_ns);
  }

  control_client& control_;
  state_report& report_;
  const plan& plan_;
  pattern_values values_;
  strategy_host strategy_;
  std::uint64_t iteration_ = 0;
  double least_messages_ = 3; // that are timed
};

// Measures rounds, and returns the links of all ranks and the seconds of rank 0.
measured_rounds measured(control_client& control, pair_measuring& pairs, const std::vector<round_of_pairs>& rounds,
                         const char* name, effort e) {
  const std::int64_t start = rg::steady_ns();
  const std::vector<rank_link> mine = pairs.run(rounds, name, e);
  const measured_rounds of_rank{mine, 1e-9 * static_cast<double>(rg::steady_ns() - start)};
  measured_rounds all;
  bool first = true;
  for (const blob& b : control.exchange("links", json::to_cbor(json(of_rank)))) {
    const auto r = parse_cbor(b).get<measured_rounds>();
    all.links.insert(all.links.end(), r.links.begin(), r.links.end());
    if (std::exchange(first, false)) all.seconds = r.seconds;
  }
  return all;
}

// Keeps the links of this rank.
void keep_own(std::vector<rank_link>& links, std::uint32_t rank) {
  std::erase_if(links, [rank](const rank_link& l) { return l.from != rank; });
}

} // namespace

json measure_pairs(control_client& control, const plan& p, std::optional<connection>& open) {
  json result = json(survey{});
  result["host"] = nullptr;
  std::vector<json> hosts;
  if (p.pairs.hosts) {
    result["host"] = check_host(control, p);
    for (const blob& b : control.exchange("hosts", json::to_cbor(result["host"]))) hosts.push_back(parse_cbor(b));
  }
  if (p.ranks < 2) return result;
  control.operation("connecting to its peers", pace::rare);
  connection& c = open.emplace(control, p);
  c.connect(p);
  {
    pair_measuring m(control, p, c);
    control.barrier("ready");
    const auto is_open = [&](const rank_pair& pair) {
      return hosts.empty() || (!drops_large_packets(hosts, pair.first, pair.second) &&
                               !drops_large_packets(hosts, pair.second, pair.first));
    };
    survey s = survey_links(p, is_open, [&](const std::vector<round_of_pairs>& rounds, const char* name, effort e) {
      return measured(control, m, rounds, name, e);
    });
    keep_own(s.alone, control.rank());
    keep_own(s.at_once, control.rank());
    result.update(json(s));
    control.barrier("pairs done"); // a rank must not free memory that peers still read
  }
  control.operation("closing the transport", pace::rare);
  c.close();
  open.reset();
  return result;
}

} // namespace regatta::comm
