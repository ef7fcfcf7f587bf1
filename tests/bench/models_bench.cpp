// SPDX-License-Identifier: Apache-2.0
#include "models_bench.hpp"

#include "limits.hpp"
#include "runs.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace regatta::bench {
namespace {

using nlohmann::json;

struct comparison {
  const char* title;
  const char* model; // the rest of [model], its plugin first
  int batch;
  const char* optimizer; // likewise
  const char* measure;
  const char* peer;        // a script in tests/bench/peers and its options
  double flops_per_sample; // of the direct algorithm, as `regatta describe` counts
  bool bf16;               // in bf16, too
};

const comparison comparisons[] = {
    {"vgg16 cifar10, batch 128, momentum", "\"vgg16\"", 128, "\"momentum\"", "warmup=1\nsteps=4",
     "vgg16_cifar.py --steps 3 --warmup 1", 1.882e9, true},
    {"resnet50 224x224, batch 16, momentum", "\"resnet50\"", 16, "\"momentum\"", "warmup=1\nsteps=2",
     "resnet50.py --steps 3 --warmup 1", 24.5e9, true},
    {"ctr, 26 slots of 1,000,001 x 10, batch 1000, adam on the rows of a batch", "\"ctr\"", 1000, "\"adam\"\nlr=1e-4",
     "warmup=5\nsteps=60", "ctr.py", 2.585e6, true},
    {"bert base, sequence 128, batch 8, adam", "\"bert\"", 8, "\"adam\"\nlr=1e-4", "warmup=1\nsteps=2",
     "bert.py --steps 3 --warmup 1", 69.93e9, true},
    {"word2vec, 100,000 words of 100, 5 words of noise, batch 1024, sgd", "\"word2vec\"\nvocabulary=100000\ndim=100",
     1024, "\"sgd\"\nlr=1.0", "warmup=200\nsteps=2000", "word2vec.py", 3600, false},
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// The two in turn, so that both see the same of what else the machine does.
void beside_pytorch(runs& ours_by, const comparison& c, const std::string& precision, bool has_peer) {
  const std::string toml = fmt::format(
      "[model]\nplugin={}\n[train]\nbatch={}\nprecision=\"{}\"\n[optimizer]\nplugin={}\n[measure]\n{}\nrepeats=1\n"
      "baseline=false\n[strategy]\nplugin=\"none\"\n[transport]\nplugin=\"null\"\n",
      c.model, c.batch, precision, c.optimizer, c.measure);
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
      "  regatta                     {:8.1f} samples/s   {:.2f}x a core's fp32 multiply-add peak, counted by the "
      "direct algorithm; {}\n",
      mine, mine * c.flops_per_sample / median(peaks), kernels.is_object() ? kernels.value("instruction set", "") : "");
  if (theirs.empty())
    fmt::print("  PyTorch                     not measured: {}\n\n",
               has_peer ? "its script failed" : "install python3-torch and libopenblas0-pthread");
  else
    fmt::print("  PyTorch                     {:8.1f} samples/s   regatta is {:.2f}x{}\n\n", median(theirs),
               mine / median(theirs), note.empty() ? "" : "; " + note);
}

} // namespace

void compare_models(const std::filesystem::path& build, const std::string& only) {
  runs ours(build);
  const bool has_peer = output_of("/usr/bin/python3 -c 'import torch' 2>/dev/null").has_value();
  for (const comparison& c : comparisons) {
    if (!std::string_view(c.title).starts_with(only)) continue;
    beside_pytorch(ours, c, "fp32", has_peer);
    if (c.bf16) beside_pytorch(ours, c, "bf16", has_peer);
  }
}

} // namespace regatta::bench
