// SPDX-License-Identifier: Apache-2.0
#include "draw.hpp"

#include <csignal>
#include <random>
#include <vector>

#include <fmt/format.h>

namespace regatta::chaos {
namespace {

using std::chrono::milliseconds;

// The same numbers with every standard library: <random>'s distributions differ between them, its engines do not.
class dice {
public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  template <class T> T one_of(const std::vector<T>& all) { return all[below(all.size())]; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

private:
  std::mt19937_64 engine_;
};

std::string signal_name(int signal) {
  return fmt::format("SIG{}", sigabbrev_np(signal));
}

disturbance draw_disturbance(dice& d, std::uint32_t ranks, bool disks) {
  disturbance x{};
  const std::uint64_t share = d.below(100);
  x.kind = share < 40   ? kind::rank
           : share < 53 ? kind::coordinator
           : share < 66 ? kind::group
           : share < 72 ? kind::dead_pipe
           : share < 92 ? kind::hung_plugin
           : disks      ? kind::full_disk
                        : kind::rank;
  x.rank = static_cast<std::uint32_t>(d.below(ranks));
  x.signal = d.one_of<int>({SIGKILL, SIGSTOP, SIGTERM, SIGHUP, SIGSEGV, SIGABRT});
  if (x.kind != kind::rank && d.chance(15)) x.signal = SIGINT; // ranks ignore it on purpose
  x.after_runs = d.below(cases);
  x.delay = milliseconds(d.chance(25) ? 0 : d.below(300));
  x.early = (x.kind == kind::coordinator || x.kind == kind::group) && d.chance(30);
  x.pause = milliseconds(500 + d.below(2500));
  return x;
}

std::string cluster_of(dice& d, const std::string& strategy, std::uint32_t workers, std::uint32_t& ranks) {
  std::string text = fmt::format("[cluster]\nworkers = {}\n", workers);
  ranks = workers;
  if (strategy == "sync_ps" || strategy == "async_ps" || strategy == "geo_ps") {
    const auto servers = static_cast<std::uint32_t>(1 + d.below(2));
    const bool colocated = d.chance(30);
    text += fmt::format("servers = {}\ncolocate = {}\n", servers, colocated);
    if (!colocated) ranks += servers;
  }
  return text + fmt::format("[strategy]\nplugin = \"{}\"\n", strategy);
}

std::string transport_of(dice& d) {
  const auto transport = d.one_of<std::string>({"shm", "tcp", "auto", "shaped"});
  std::string text = fmt::format("[transport]\nplugin = \"{}\"\n", transport);
  if (transport == "shaped") text += "bandwidth = \"10Gbit/s\"\nlatency = \"20us\"\n";
  return text;
}

struct hang {
  const char *plugin, *at;
  bool blames_any;
};

void draw_hang(dice& d, disturbance& x) {
  const hang h = d.one_of<hang>({{"model", "init", false},
                                 {"model", "bind", false},
                                 {"model", "step", false},
                                 {"model", "need", false},
                                 {"model", "destructor", false},
                                 {"strategy", "receive", false},
                                 {"strategy", "return", false},
                                 {"strategy", "poll", false},
                                 {"transport", "send", true},
                                 {"transport", "receive", true},
                                 {"transport", "report", true},
                                 {"transport", "poll", false}});
  x.plugin = h.plugin;
  x.at = h.at;
  x.blames_any = h.blames_any;
}

} // namespace

campaign draw(std::uint64_t seed, bool disks) {
  dice d(seed);
  campaign c;
  c.seed = seed;
  const auto strategy = d.one_of<std::string>({"allreduce", "sync_ps", "async_ps", "dgc", "geo_ps", "local_sgd"});
  const auto workers = static_cast<std::uint32_t>(2 + d.below(3));
  std::string cluster = cluster_of(d, strategy, workers, c.ranks), transport = transport_of(d);
  c.disturbance = draw_disturbance(d, c.ranks, disks);
  std::string measure = "[measure]\nwarmup = 1\nrepeats = 1\nbaseline = false\n";
  std::string model, sweep;
  if (c.disturbance.kind == kind::hung_plugin) {
    c.hangs = d.below(cases);
    draw_hang(d, c.disturbance);
    if (c.disturbance.plugin == "strategy") cluster = cluster_of(d, "hanging_strategy", workers, c.ranks);
    if (c.disturbance.plugin == "transport") transport = "[transport]\nplugin = \"hanging_transport\"\n";
    model = fmt::format("[model]\nplugin = \"hanging_model\"\nloops = {}\n", d.chance(30));
    measure += "steps = 20\ntimeout = \"2s\"\n";
    sweep = fmt::format("[[sweep.zip]]\n\"{}.at\" = [", c.disturbance.plugin);
    for (std::size_t i = 0; i < cases; ++i) sweep += fmt::format("\"{}\", ", i == c.hangs ? c.disturbance.at : "never");
    sweep += "]\n\"model.features\" = [16, 32, 48]\n";
    c.options = "--plugin-path " HANGING_PLUGINS;
  } else {
    model = d.chance(50) ? "[model]\nplugin = \"null\"\n" : "[model]\nplugin = \"mlp\"\nhidden = [32]\n";
    model += "[data]\nsource = \"random\"\n";
    measure += "seconds = 0.5\n";
    sweep = "[sweep]\n\"train.batch\" = [4, 8, 16]\n";
  }
  c.toml = model + cluster + transport + measure + "[train]\nkernels = \"fixed\"\n" + sweep;
  return c;
}

std::string name_of(const disturbance& d) {
  switch (d.kind) {
  case kind::rank: return "rank " + signal_name(d.signal);
  case kind::coordinator: return "coordinator " + signal_name(d.signal);
  case kind::group: return "group " + signal_name(d.signal);
  case kind::dead_pipe: return "dead pipe";
  case kind::full_disk: return "full disk";
  case kind::hung_plugin: return "hung " + d.plugin;
  }
  return "";
}

std::string describe(const disturbance& d) {
  std::string text = name_of(d);
  if (d.kind == kind::rank) text = fmt::format("rank {} {}", d.rank, signal_name(d.signal));
  if (d.kind == kind::hung_plugin) return text + ", " + d.at;
  text += d.early ? fmt::format(", {} ms after the start", d.delay.count())
                  : fmt::format(", after {} runs and {} ms of the next", d.after_runs, d.delay.count());
  if (d.signal == SIGSTOP && d.kind != kind::rank) text += fmt::format(", SIGCONT {} ms later", d.pause.count());
  return text;
}

} // namespace regatta::chaos
