// SPDX-License-Identifier: Apache-2.0
//
// `./dev bench simulator [CASE...]`: the cost of simulating thousands of ranks, in CPU seconds and memory. Every case
// runs in a process of its own. Without arguments it runs the cases of the table below; a case is
//
//   STRATEGY,WORKERS,SERVERS,MEGABYTES,BUCKET[,fold|check|shared|links|hosts=N][,KEY=VALUE...] such as
//   sync_ps,100,40,100,4,fold
//
// with a bucket in MiB; `links` adds incoming links and overheads, and with `hosts` each host has
// one, which its ranks share. The model has 16 tensors, links carry 10 Gbit/s, and one step is simulated.
#include "simulator/simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <regatta/plugin.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace regatta;

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// Adds full-duplex links, of hosts or, if there is one host, of ranks, and overheads: as in a prediction.
void add_links(simulation_setup& s) {
  if (s.hosts == 1) {
    s.link_of.resize(s.workers + s.servers);
    std::iota(s.link_of.begin(), s.link_of.end(), 0u);
  }
  s.network.links.assign(std::max<std::size_t>(s.hosts, s.link_of.size()),
                         {.out_bytes_per_ns = 1.25, .in_bytes_per_ns = 1.25, .latency_ns = 20'000});
  s.network.overhead_ns = 2'000;
  s.network.overhead_ns_per_byte = 0.1;
}

simulation_setup setup_of(const std::vector<std::string>& part) {
  simulation_setup s;
  s.strategy = part.at(0);
  s.workers = static_cast<std::uint32_t>(std::stoul(part.at(1)));
  s.servers = static_cast<std::uint32_t>(std::stoul(part.at(2)));
  s.ghosts = true;
  s.steps = 1;
  s.network.latency_ns = 20'000;
  s.network.bytes_per_ns = 1.25;
  s.tensors.assign(16, static_cast<std::int64_t>(std::stod(part.at(3)) * 1e6 / 4 / 16));
  s.parameters["bucket"] = static_cast<std::int64_t>(std::stod(part.at(4)) * (1 << 20));
  bool links = false;
  for (std::size_t i = 5; i < part.size(); ++i) {
    const std::size_t equal = part[i].find('=');
    if (part[i] == "fold" || part[i] == "check") {
      s.fold = part[i] == "fold" ? folding::on : folding::checked;
      s.network.order = link_order::shared;
    } else if (part[i] == "shared") {
      s.network.order = link_order::shared;
    } else if (part[i] == "links") {
      links = true;
    } else if (part[i].starts_with("hosts=")) {
      s.hosts = static_cast<std::uint32_t>(std::stoul(part[i].substr(6)));
    } else if (part[i].starts_with("steps=")) {
      s.steps = std::stoul(part[i].substr(6));
    } else {
      const auto value = nlohmann::json::parse(part[i].substr(equal + 1), nullptr, false);
      s.parameters[part[i].substr(0, equal)] = value.is_discarded() ? nlohmann::json(part[i].substr(equal + 1)) : value;
    }
  }
  if (links) add_links(s);
  return s;
}

void run(const std::string& text) {
  const simulation_setup s = setup_of(split(text));
  const registry plugins = registry({REGATTA_PLUGINS}).loading();
  const double before = cpu_seconds();
  const simulation_result r = simulate(plugins, s);
  std::uint64_t messages = 0;
  for (const auto& c : r.counted) messages += c.messages_sent;
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  fmt::print("{:<58} {:>10} messages {:8.2f} CPU s {:8.1f} MB  end {:.3f} ms, {} ranks{}{}\n", text, messages,
             cpu_seconds() - before, static_cast<double>(u.ru_maxrss) / 1000, static_cast<double>(r.virtual_ns) * 1e-6,
             r.simulated, r.rounded ? ", rounded" : "", r.whole.empty() ? "" : ", not folded: " + r.whole);
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> cases(argv + 1, argv + argc);
  if (cases.empty())
    cases = {"sync_ps,100,40,100,4",
             "sync_ps,100,40,100,4,check",
             "sync_ps,4000,40,100,4,check",
             "allreduce,1000,0,100,100,algorithm=ring",
             "allreduce,4000,0,100,100,algorithm=ring",
             "allreduce,4000,0,100,100,algorithm=ring,check",
             "allreduce,4000,0,100,100,algorithm=halving_doubling"};
  int failed = 0;
  for (const std::string& text : cases) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      try {
        run(text);
      } catch (const std::exception& e) {
        fmt::print("{}: {}\n", text, e.what());
        std::fflush(stdout);
        _exit(1);
      }
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status != 0;
  }
  return failed;
}
