// SPDX-License-Identifier: Apache-2.0
//
// Whole runs in real processes on a fake device (streams.hpp) and on the CPU, which must train bit-identically.
#pragma once

#include "program.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace device_runs {

using namespace regatta::test;

inline const char* const experiment = R"(
[model]
plugin = "mlp"
hidden = [64, 32]
[data]
source = "random"
[train]
batch = 16
kernels = "fixed"
[optimizer]
plugin = "momentum"
lr = 0.02
momentum = 0.5
[transport]
plugin = "tcp"
[cluster]
workers = 2
servers = 1
pin = false
[measure]
warmup = 1
steps = 4
repeats = 1
baseline = false
[strategy]
plugin = "allreduce"
[strategy.allreduce]
bucket = 65536
algorithm = "ring" # also where the transport has an all-reduce of its own
[strategy.sync_ps]
bucket = 65536
[strategy.async_ps]
bound = 0
[strategy.geo_ps]
k = 2
[strategy.local_sgd]
k = 2
[strategy.dgc]
sparsity = [0.9]
)";

inline std::string on(const std::string& kind) {
  return " --set train.device=" + kind + " --plugin-path " REGATTA_DEVICE_PLUGINS;
}
inline const std::string on_device = on("cuda");

// Returns the metric without the times at which it was measured.
inline json metric_of(const json& entry) {
  json metric = entry.value("metric", json());
  if (metric.is_object())
    for (json& point : metric.at("curve"))
      for (const char* time : {"seconds", "training_seconds"}) point.erase(time);
  return metric;
}

// Checks that both runs of every case are bit-identical.
inline void compare(const json& expected, const json& found) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(expected[i].at("case"));
    REQUIRE(found[i].at("status") == "ok");
    CHECK(found[i].at("loss").at("curve") == expected[i].at("loss").at("curve"));
    CHECK(found[i].at("replicas_identical") == expected[i].at("replicas_identical"));
    CHECK(metric_of(found[i]) == metric_of(expected[i]));
  }
}

inline void same_as_on_the_host(const temporary_folder& s, const std::string& options,
                                const std::vector<std::string>& orders = {"late"}, const std::string& text = experiment,
                                const std::string& kind = "cuda") {
  const json expected = results(s, text, options);
  REQUIRE(!expected.empty());
  for (const std::string& order : orders) {
    INFO(options, ", order: ", order);
    compare(expected, results(s, text, options + on(kind), "REGATTA_FAKE_DEVICE=" + order));
  }
}

// Returns how often the host waited for each rank's device in a run of two ranks, in ascending order.
inline std::vector<int> waits(const temporary_folder& s, const std::string& text, const std::string& options,
                              int steps) {
  fs::remove(s.path / "waits");
  results(s, text, options + " --set measure.steps=" + std::to_string(steps) + on_device,
          "REGATTA_FAKE_DEVICE_LOG=" + (s.path / "waits").string());
  std::ifstream in(s.path / "waits");
  std::vector<int> all;
  for (int n = 0; in >> n;) all.push_back(n);
  REQUIRE(all.size() == 2); // two workers
  CHECK(all[0] > 0);        // at the start and at the end
  std::sort(all.begin(), all.end());
  return all;
}

} // namespace device_runs
