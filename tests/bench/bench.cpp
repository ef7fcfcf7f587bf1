// SPDX-License-Identifier: Apache-2.0
//
// `./dev bench [models|scaling|engine|comm]`: ratios against what a user would pick instead and against the machine's
// limits, the two sides of each in turn in one run. Nothing here is asserted: timings belong into tables, not into
// tests.
#include "comm_bench.hpp"
#include "command.hpp"
#include "limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

using regatta::bench::output_of;

class bench {
public:
  explicit bench(fs::path build) : build_(std::move(build)) {
    std::string name = (fs::temp_directory_path() / "regatta-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for temporary files");
    scratch_ = name;
  }
  ~bench() { fs::remove_all(scratch_); }

  void limits() {
    fmt::print("limits of this machine\n");
    fmt::print("  multiply-add, one core      {:8.1f} GFLOP/s\n", regatta::bench::fma_peak() * 1e-9);
    fmt::print("  memory copy, one core       {:8.1f} GB/s\n", regatta::bench::memory_copy() * 1e-9);
    for (const std::uint64_t bytes : {std::uint64_t{64} << 10, std::uint64_t{4} << 20})
      fmt::print("  loopback TCP, {:5} KiB     {:8.1f} GB/s\n", bytes >> 10,
                 regatta::bench::loopback_tcp(bytes) * 1e-9);
    fmt::print("\n");
  }

  // Each model on one worker and one thread, beside PyTorch on the same core.
  void models() {
    beside_pytorch({.title = "vgg16 cifar10, batch 128, fp32, momentum",
                    .toml = "[model]\nplugin=\"vgg16\"\n[train]\nbatch=128\n[measure]\nwarmup=1\nsteps=4\n",
                    .peer = "vgg16_cifar.py",
                    .flops_per_sample = 1.882e9});
    beside_pytorch({.title = "ctr, 26 slots of 1,000,001 x 10, batch 1000, fp32, adam on the rows of a batch",
                    .toml = "[model]\nplugin=\"ctr\"\n[train]\nbatch=1000\n[optimizer]\nplugin=\"adam\"\nlr=1e-4\n"
                            "[measure]\nwarmup=5\nsteps=60\n",
                    .peer = "ctr.py",
                    .flops_per_sample = 2.585e6});
    beside_pytorch({.title = "word2vec, 100,000 words of 100, 5 words of noise, batch 1024, fp32, sgd",
                    .toml = "[model]\nplugin=\"word2vec\"\nvocabulary=100000\ndim=100\n[train]\nbatch=1024\n"
                            "[optimizer]\nplugin=\"sgd\"\nlr=1.0\n[measure]\nwarmup=200\nsteps=2000\n",
                    .peer = "word2vec.py",
                    .flops_per_sample = 3600});
    beside_pytorch({.title = "bert base, sequence 128, batch 8, fp32, adam",
                    .toml = "[model]\nplugin=\"bert\"\n[train]\nbatch=8\n[optimizer]\nplugin=\"adam\"\nlr=1e-4\n"
                            "[measure]\nwarmup=1\nsteps=3\n",
                    .peer = "bert.py",
                    .flops_per_sample = 69.93e9});
  }

  // Two workers on two cores, batch 64.
  void scaling() {
    for (const char* precision : {"fp32", "bf16"}) {
      const std::string toml = fmt::format(
          "[model]\nplugin=\"vgg16\"\n[train]\nbatch=64\nprecision=\"{}\"\n[cluster]\nworkers=2\nservers=2\n"
          "colocate=true\n[measure]\nwarmup=2\nsteps=8\nrepeats=3\n[sweep]\n"
          "\"strategy.plugin\"=[\"allreduce\",\"sync_ps\"]\n\"transport.plugin\"=[\"shm\",\"tcp\"]\n",
          precision);
      fmt::print("vgg16 cifar10, 2 workers on 2 cores, batch 64, {} (each repeat beside its baseline)\n", precision);
      for (const json& e : run(toml)) {
        fmt::print("  {:<10} {:<4}             E {:5.3f}   without communication {:5.3f}   step {:.3f} s   lost to",
                   text_of(e, "strategy.plugin"), text_of(e, "transport.plugin"),
                   e.at("efficiency").at("median").get<double>(), e.at("contention").get<double>(),
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
  struct comparison {
    const char* title;
    std::string toml;        // its model, training and measurement
    const char* peer;        // a script in tests/bench/peers
    double flops_per_sample; // of the direct algorithm, as `regatta describe` counts
  };

  // The two in turn, so that both see the same of what else the machine does.
  void beside_pytorch(const comparison& c) {
    const std::string toml =
        c.toml + "repeats=1\nbaseline=false\n[strategy]\nplugin=\"none\"\n[transport]\nplugin=\"null\"\n";
    const std::string peer =
        std::string("OMP_NUM_THREADS=1 taskset -c 0 /usr/bin/python3 " REGATTA_SOURCE "/tests/bench/peers/") + c.peer;
    const bool has_peer = output_of("/usr/bin/python3 -c 'import torch' 2>/dev/null").has_value();
    std::vector<double> ours, theirs, peaks;
    std::string note;
    for (int i = 0; i < 3; ++i) {
      peaks.push_back(regatta::bench::fma_peak());
      ours.push_back(run(toml).at(0).at("samples_per_second").at("median"));
      const auto text = has_peer ? output_of(peer) : std::nullopt;
      if (!text) continue;
      const json said = json::parse(*text);
      theirs.push_back(said.at("samples_per_second"));
      note = said.value("note", "");
    }
    const double mine = median(ours), peak = median(peaks);
    fmt::print("{}, one thread (median of {} runs in turn)\n", c.title, ours.size());
    fmt::print("  regatta                     {:8.1f} samples/s   {:.2f}x a core's multiply-add peak, counted by the "
               "direct algorithm\n",
               mine, mine * c.flops_per_sample / peak);
    if (theirs.empty())
      fmt::print("  PyTorch                     not measured: install python3-torch\n\n");
    else
      fmt::print("  PyTorch                     {:8.1f} samples/s   regatta is {:.2f}x{}\n\n", median(theirs),
                 mine / median(theirs), note.empty() ? "" : "; " + note);
  }

  json run(const std::string& toml) {
    const fs::path file = scratch_ / "bench.toml", out = scratch_ / "out";
    std::ofstream(file) << toml;
    fs::remove_all(out);
    const auto text = output_of(fmt::format("{} run {} --out {} --format json", (build_ / "bin" / "regatta").string(),
                                            file.string(), out.string()));
    if (!text) throw std::runtime_error("a run failed");
    return json::parse(*text).at("results");
  }
  static std::string text_of(const json& e, const char* key) { return e.at("case").at(key); }
  static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  }
  fs::path build_, scratch_;
};

} // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc > 1 ? argv[1] : "all";
    if (what != "all" && what != "models" && what != "scaling" && what != "engine" && what != "comm") {
      fmt::print(stderr, "usage: bench [models | scaling | engine | comm]\n");
      return 2;
    }
    bench b(REGATTA_BUILD);
    b.limits();
    if (what == "all" || what == "comm") regatta::bench::compare_communication(REGATTA_BUILD);
    if (what == "all" || what == "engine") b.engine();
    if (what == "all" || what == "scaling") b.scaling();
    if (what == "all" || what == "models") b.models();
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench: {}\n", e.what());
    return 1;
  }
}
