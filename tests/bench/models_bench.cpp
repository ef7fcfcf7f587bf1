// SPDX-License-Identifier: Apache-2.0
#include "models_bench.hpp"

#include "cpu.hpp"
#include "gradients.hpp"
#include "limits.hpp"
#include "runs.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace regatta::bench {
namespace {

using nlohmann::json;

struct comparison {
  const char *id, *file; // of the model, and its plugin's
  const char* title;
  const char* parameters; // of the model, as TOML
  int batch;
  const char* optimizer; // its plugin and parameters
  const char* measure;
  const char* peer;        // a script in tests/bench/peers and its options
  double flops_per_sample; // of the direct algorithm, as `regatta describe` counts
  bool bf16;               // in bf16, too
};

const comparison comparisons[] = {
    {"vgg16", "vgg.so", "VGG16, CIFAR-10, batch 128, momentum", "", 128, "\"momentum\"", "warmup=1\nsteps=4",
     "vgg16_cifar.py --steps 3 --warmup 1", 1.882e9, true},
    {"resnet50", "resnet.so", "ResNet50, 224x224, batch 16, momentum", "", 16, "\"momentum\"", "warmup=1\nsteps=2",
     "resnet50.py --steps 2 --warmup 1", 24.5e9, true},
    {"ctr", "ctr.so", "CTR, 26 slots of 1,000,001 x 10, batch 1000, Adam", "", 1000, "\"adam\"\nlr=1e-4",
     "warmup=5\nsteps=60", "ctr.py", 2.585e6, true},
    {"bert", "bert.so", "BERT base, sequence 128, batch 8, Adam", "", 8, "\"adam\"\nlr=1e-4", "warmup=1\nsteps=1",
     "bert.py --steps 1 --warmup 1", 69.93e9, true},
    {"word2vec", "word2vec.so", "word2vec, 100,000 words of 100, 5 words of noise, batch 1024, SGD",
     "vocabulary=100000\ndim=100", 1024, "\"sgd\"\nlr=1.0", "warmup=200\nsteps=2000", "word2vec.py", 3600, false},
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct speeds {
  double ours = 0, pytorch = 0; // samples/s; 0: not measured
};

std::string number(double v) {
  return !v ? "-" : v < 1000 ? fmt::format("{:.3g}", v) : fmt::format("{:.0f}", v);
}

// The two in turn, so that both see the same of what else the machine does.
speeds beside_pytorch(runs& ours_by, const comparison& c, const std::string& precision, bool has_peer) {
  const std::string toml = fmt::format(
      "[model]\nplugin=\"{}\"\n{}\n[train]\nbatch={}\nprecision=\"{}\"\n[optimizer]\nplugin={}\n[measure]\n{}\n"
      "repeats=1\nbaseline=false\n[strategy]\nplugin=\"none\"\n[transport]\nplugin=\"null\"\n",
      c.id, c.parameters, c.batch, precision, c.optimizer, c.measure);
  const std::string peer =
      std::string("OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c 0 /usr/bin/python3 " REGATTA_SOURCE
                  "/tests/bench/peers/") +
      c.peer + (c.bf16 ? " --precision " + precision : "");
  std::vector<double> ours, theirs, peaks;
  std::string note;
  json kernels;
  for (int i = 0; i < 3; ++i) {
    peaks.push_back(fma_peak());
    const json result = ours_by.results(toml).at(0);
    ours.push_back(result.at("samples_per_second").at("median"));
    kernels = result.at("kernels");
    const auto text = has_peer ? output_of(peer) : std::nullopt;
    if (!text) continue;
    const json said = json::parse(*text);
    theirs.push_back(said.at("samples_per_second"));
    note = said.value("note", "");
  }
  const double mine = median(ours);
  fmt::print("{}, {}, one thread (median of {} runs in turn)\n", c.title, precision, ours.size());
  fmt::print(
      "  regatta                     {:>8} samples/s   {:.2f}x a core's fp32 multiply-add peak of {:.0f} GFLOP/s, "
      "counted by the direct algorithm; {}\n",
      number(mine), mine * c.flops_per_sample / median(peaks), median(peaks) * 1e-9,
      kernels.is_object() ? kernels.value("instruction set", "") : "");
  if (theirs.empty()) {
    fmt::print("  PyTorch                     not measured: {}\n",
               has_peer ? "its script failed" : "install python3-torch and libopenblas0-pthread");
    return {mine, 0};
  }
  fmt::print("  PyTorch                     {:>8} samples/s   regatta is {:.2f}x{}\n", number(median(theirs)),
             mine / median(theirs), note.empty() ? "" : "; " + note);
  return {mine, median(theirs)};
}

std::string cells(const speeds& s) {
  return fmt::format("{} | {} | {}", number(s.ours), number(s.pytorch), number(s.pytorch ? s.ours / s.pytorch : 0));
}

} // namespace

void compare_models(const std::filesystem::path& build, const std::string& only) {
  runs ours(build);
  const bool has_peer = output_of("/usr/bin/python3 -c 'import torch' 2>/dev/null").has_value();
  std::string rows;
  for (const comparison& c : comparisons) {
    if (!only.empty() && only != c.id) continue;
    const speeds fp32 = beside_pytorch(ours, c, "fp32", has_peer);
    const speeds bf16 = c.bf16 && test::computes_bf16() ? beside_pytorch(ours, c, "bf16", has_peer) : speeds{};
    const auto apart = differences_of(c.file, c.id, static_cast<std::uint64_t>(c.batch));
    const std::string bf16_apart = apart && apart->bf16 ? fmt::format("{:.1e}", *apart->bf16) : "-";
    if (apart)
      fmt::print("  gradients, relative to fp32 by the direct algorithm: {:.1e} in fp32, {} in bf16\n",
                 apart->algorithms, bf16_apart);
    fmt::print("\n");
    rows += fmt::format("| {} | {} | {} | {} |\n", c.title, cells(fp32), cells(bf16),
                        apart ? fmt::format("{:.1e} | {}", apart->algorithms, bf16_apart) : "- | -");
  }
  if (rows.empty()) throw std::invalid_argument("no model \"" + only + "\" is compared");
  fmt::print("| model, samples/s | fp32 | PyTorch | ratio | bf16 | PyTorch | ratio | gradients fp32 | bf16 |\n"
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n{}",
             rows);
}

} // namespace regatta::bench
