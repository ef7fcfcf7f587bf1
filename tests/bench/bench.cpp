// SPDX-License-Identifier: Apache-2.0
//
// `./dev bench [models [MODEL]|scaling|engine|comm]`: ratios against what a user would pick instead and against the
// machine's limits, the two sides of each in turn in one run. Nothing here is asserted: timings belong into tables, not
// into tests.
#include "comm_bench.hpp"
#include "cpu.hpp"
#include "limits.hpp"
#include "models_bench.hpp"
#include "runs.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class bench {
public:
  explicit bench(const fs::path& build) : runs_(build) {}

  void limits() {
    fmt::print("limits of this machine\n");
    fmt::print("  multiply-add, one core      {:8.1f} GFLOP/s\n", regatta::bench::fma_peak() * 1e-9);
    fmt::print("  memory copy, one core       {:8.1f} GB/s\n", regatta::bench::memory_copy() * 1e-9);
    for (const std::uint64_t bytes : {std::uint64_t{64} << 10, std::uint64_t{4} << 20})
      fmt::print("  loopback TCP, {:5} KiB     {:8.1f} GB/s\n", bytes >> 10,
                 regatta::bench::loopback_tcp(bytes) * 1e-9);
    fmt::print("\n");
  }

  // Two workers on two cores, batch 64.
  void scaling() {
    for (const char* precision : {"fp32", "bf16"}) {
      if (std::string(precision) == "bf16" && !regatta::test::computes_bf16()) continue;
      const std::string toml = fmt::format(
          "[model]\nplugin=\"vgg16\"\n[train]\nbatch=64\nprecision=\"{}\"\n[cluster]\nworkers=2\nservers=2\n"
          "colocate=true\n[measure]\nwarmup=2\nsteps=8\nrepeats=3\n[sweep]\n"
          "\"strategy.plugin\"=[\"allreduce\",\"sync_ps\"]\n\"transport.plugin\"=[\"shm\",\"tcp\"]\n",
          precision);
      fmt::print("vgg16 cifar10, 2 workers on 2 cores, batch 64, {} (each repeat beside its baseline)\n", precision);
      for (const json& e : run(toml)) {
        fmt::print("  {:<10} {:<4}             E {:5.3f}   without communication {:5.3f}   step {:.3f} s   lost to",
                   text_of(e, "strategy.plugin"), text_of(e, "transport.plugin"),
                   e.at("efficiency").at("median").get<double>(), e.at("contention").at("median").get<double>(),
                   e.at("step_seconds").at("median").get<double>());
        for (const auto& [what, share] : e.at("lost").items())
          if (std::abs(share.get<double>()) >= 0.002) fmt::print("  {} {:.1f} %", what, 100 * share.get<double>());
        fmt::print("\n");
      }
      fmt::print("\n");
    }
  }

  // The engine itself: a model that computes nothing, two workers.
  void engine() {
    fmt::print("null model, 2 workers, one bucket (the engine's own step)\n");
    for (const char* transport : {"shm", "tcp"})
      for (const char* spin : {"200us", "0s"}) {
        const std::string toml = fmt::format(
            "[model]\nplugin=\"null\"\ntensors=1\nbytes=\"64B\"\n[train]\nbatch=1\n[data]\ncontent=\"zeros\"\n"
            "[transport]\nplugin=\"{}\"\n[cluster]\nworkers=2\nspin=\"{}\"\n"
            "[measure]\nwarmup=1000\nsteps=20000\nrepeats=3\nbaseline=false\n",
            transport, spin);
        const json step = run(toml).at(0).at("step_seconds");
        fmt::print("  {:<4} {:<9}              {:8.1f} us a step   p99 {:.1f} us\n", transport,
                   *spin == '0' ? "blocking" : "spinning", step.at("median").get<double>() * 1e6,
                   step.at("p99").get<double>() * 1e6);
      }
    fmt::print("\n");
  }

private:
  json run(const std::string& toml) { return runs_.results(toml); }
  static std::string text_of(const json& e, const char* key) { return e.at("case").at(key); }
  regatta::bench::runs runs_;
};

} // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0); // each line when it is measured, in a file too
  try {
    const std::string what = argc > 1 ? argv[1] : "all";
    if (what != "all" && what != "models" && what != "scaling" && what != "engine" && what != "comm") {
      fmt::print(stderr,
                 "usage: bench [models [vgg16 | resnet50 | ctr | bert | word2vec] | scaling | engine | comm]\n");
      return 2;
    }
    bench b(REGATTA_BUILD);
    b.limits();
    if (what == "all" || what == "comm") regatta::bench::compare_communication(REGATTA_BUILD);
    if (what == "all" || what == "engine") b.engine();
    if (what == "all" || what == "scaling") b.scaling();
    if (what == "all" || what == "models") regatta::bench::compare_models(REGATTA_BUILD, argc > 2 ? argv[2] : "");
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench: {}\n", e.what());
    return 1;
  }
}
