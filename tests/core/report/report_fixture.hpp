// SPDX-License-Identifier: Apache-2.0
//
// Results made by hand, for the tests of tables.
#pragma once

#include "json.hpp"

namespace report_fixture {

using nlohmann::json;

inline json entry(const json& swept, const std::string& strategy, int workers, int servers, double rate) {
  return {{"case", swept},
          {"status", "ok"},
          {"error", nullptr},
          {"workers", workers},
          {"servers", servers},
          {"threads", 1},
          {"batch_per_worker", 128},
          {"global_batch", 128 * workers},
          {"precision", "fp32"},
          {"parameters", 15254602},
          {"fingerprint", {{"model", "a"}, {"data", "b"}, {"precision", "fp32"}, {"synchrony", "synchronous"}}},
          {"samples_per_second",
           {{"unit", "samples/s"}, {"scope", "global"}, {"median", rate}, {"cv", 0.0042}, {"repeats", {rate, rate}}}},
          {"baseline_samples_per_second", nullptr},
          {"efficiency", nullptr},
          {"contention", nullptr},
          {"efficiency_over_contention", nullptr},
          {"lost", nullptr},
          {"bytes", {{"sent_per_step", {{"worker", strategy == "none" ? 0.0 : 61.02e6}, {"server", nullptr}}}}},
          {"loss", {{"first", 2.3051}, {"last", 1.94}, {"curve", {2.3051, 1.94}}}},
          {"metric", nullptr},
          {"replicas_identical", strategy == "none" ? json() : json(true)},
          {"kernels", nullptr},
          {"warnings", json::array()}};
}

inline void scale(json& e, double efficiency, const json& lost) {
  const auto figure = [](double median) {
    return json{{"n", 3},
                {"median", median},
                {"min", 0.99 * median},
                {"max", 1.01 * median},
                {"low", 0.99 * median},
                {"high", 1.01 * median},
                {"coverage", 0.75},
                {"smallest_detectable", 0.031}};
  };
  e["baseline_samples_per_second"] = figure(138.9);
  e["efficiency"] = figure(efficiency);
  e["contention"] = figure(0.994);
  e["efficiency_over_contention"] = figure(efficiency / 0.994);
  e["lost"] = lost;
}

// The main job in three variants: alone, all-reduce over shm, co-located servers over tcp.
inline json result() {
  json experiment = {
      {"experiment", {{"name", "vgg16-cifar"}, {"seed", 1}, {"file", "vgg16-cifar.toml"}}},
      {"model", {{"plugin", "vgg16"}, {"parameters", {{"input", "cifar10"}, {"batch_norm", false}}}}},
      {"train", {{"batch", 128}, {"scaling", "weak"}, {"precision", "fp32"}}},
      {"data", {{"source", "constant"}, {"queue_source", "random"}, {"content", "normal"}}},
      {"optimizer", {{"plugin", "momentum"}, {"lr", 0.01}}},
      {"strategy", {{"plugin", "none"}, {"parameters", json::object()}}},
      {"transport", {{"plugin", "shm"}, {"parameters", json::object()}}},
      {"cluster", {{"threads", 1}, {"workers", 2}, {"colocate", true}}},
      {"measure", {{"repeats", 3}, {"steps", 30}, {"seconds", 0.0}}},
      {"sweep", json::array({{{"key", "strategy.plugin"}, {"values", {"none", "allreduce", "sync_ps"}}}})},
      {"report", {{"rows", ""}, {"columns", ""}, {"value", ""}}}};
  json host = {{"name", "bench"},
               {"cpu", "Intel Xeon (AVX-512, AMX)"},
               {"cores", 2},
               {"memory_bytes", 24ull << 30},
               {"cgroup_cpus", nullptr},
               {"gpus", json::array()},
               {"kernel", "Linux 6.18"}};
  json alone =
      entry({{"strategy.plugin", "none"}, {"transport.plugin", "shm"}, {"cluster.workers", 1}}, "none", 1, 0, 138.9);
  json ring = entry({{"strategy.plugin", "allreduce"}, {"transport.plugin", "shm"}, {"cluster.workers", 2}},
                    "allreduce", 2, 0, 273.0);
  scale(ring, 0.983,
        {{"input", 0.0},
         {"compute", -0.001},
         {"update", 0.001},
         {"exposed_communication", 0.0114},
         {"wait", 0.006},
         {"other", -0.0004}});
  json servers = entry({{"strategy.plugin", "sync_ps"}, {"transport.plugin", "tcp"}, {"cluster.workers", 2}}, "sync_ps",
                       2, 2, 268.2);
  scale(servers, 0.965,
        {{"input", 0.0},
         {"compute", 0.004},
         {"update", 0.009},
         {"exposed_communication", 0.022},
         {"wait", 0.0},
         {"other", 0.0}});
  servers["bytes"]["sent_per_step"]["worker"] = 61.1e6;
  return {{"schema", "regatta.result/1"},
          {"context",
           {{"regatta", "0.1.0"},
            {"git", "3f2a91c"},
            {"build", "Release"},
            {"date", "2026-11-20T16:15:00Z"},
            {"command", "regatta run vgg16-cifar.toml"},
            {"experiment", experiment},
            {"hosts", json::array({host})},
            {"plugins", json::array()},
            {"warnings", json::array()}}},
          {"results", json::array({alone, ring, servers})}};
}

} // namespace report_fixture
