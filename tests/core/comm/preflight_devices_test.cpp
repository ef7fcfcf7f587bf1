// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs regatta preflight suspects, with given figures.
#include "comm/preflight_devices.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

using namespace regatta::comm;
using nlohmann::json;

namespace {

// Hosts n0, n1, ... with equal GPUs, but for some per cent of noise.
struct hosts_with_gpus {
  hosts_with_gpus(std::uint32_t hosts, std::uint32_t gpus) {
    for (std::uint32_t h = 0; h < hosts; ++h) {
      json devices = json::array();
      for (std::uint32_t g = 0; g < gpus; ++g) {
        const double noise = 1 + 0.01 * ((h * 5 + g * 3) % 7);
        devices.push_back(
            {{"kind", "cuda"},
             {"executor", "cudnn"},
             {"index", g},
             {"error", nullptr},
             {"absent", false},
             {"gemm", 50e12 / noise},
             {"copy", 1.5e12 / noise},
             {"before",
              {{"name", "A GPU"}, {"utilisation", 0.0}, {"memory_used_bytes", 0.5e9}, {"memory_total_bytes", 80e9}}},
             {"during", {{"sm_clock_hz", nullptr}, {"power_watts", nullptr}, {"temperature_celsius", 60}}}});
      }
      facts.push_back({"n" + std::to_string(h), {{"gpus", json(gpus, "A GPU")}}, nullptr, nullptr});
      results.push_back({{"host", {{"devices", devices}}}});
    }
  }
  json& gpu(std::uint32_t host, std::uint32_t index) { return results[host]["host"]["devices"][index]; }
  void scale(std::uint32_t host, std::uint32_t index, const char* figure, double factor) {
    gpu(host, index)[figure] = factor * gpu(host, index)[figure].get<double>();
  }
  // Instead of devices: none could be counted.
  void lack(std::uint32_t host, const char* why, bool absent) {
    json entry = gpu(host, 0);
    for (const char* member : {"index", "gemm", "copy", "before", "during"}) entry[member] = nullptr;
    entry["error"] = why;
    entry["absent"] = absent;
    results[host]["host"]["devices"] = json::array({entry});
  }
  std::vector<finding> found() const { return findings_of_devices(facts, results); }

  std::vector<host_facts> facts;
  std::vector<json> results;
};

using numbers = std::vector<std::uint32_t>;

finding only(const hosts_with_gpus& hosts) {
  const auto found = hosts.found();
  REQUIRE(found.size() == 1);
  return found[0];
}

bool says(const finding& f, const std::string& text) {
  return f.evidence.find(text) != std::string::npos;
}

} // namespace

TEST_CASE("healthy GPUs are no suspects, whatever their number") {
  for (const std::uint32_t hosts : {1U, 2U, 3U, 8U})
    for (const std::uint32_t gpus : {0U, 1U, 2U, 8U}) CHECK(hosts_with_gpus(hosts, gpus).found().empty());
}

TEST_CASE("one of the GPUs of eight hosts at 70 % is named, with its index and figures") {
  for (const std::uint32_t gpus : {1U, 8U}) {
    hosts_with_gpus slow(8, gpus), memory(8, gpus);
    slow.scale(3, gpus - 1, "gemm", 0.7);
    memory.scale(3, gpus - 1, "copy", 0.7);
    for (const auto& [hosts, check] : {std::pair(&slow, "gpu_compute"), std::pair(&memory, "gpu_memory")}) {
      const auto found = hosts->found();
      REQUIRE(found.size() == 1);
      CHECK(found[0].hosts == numbers{3});
      CHECK(found[0].check == check);
      CHECK(says(found[0], fmt::format("GPU {} (A GPU): ", gpus - 1)));
      CHECK(says(found[0], fmt::format(" of {} GPUs; meanwhile its temperature 60 degrees C", 8 * gpus)));
    }
    CHECK(says(only(slow), "matrix products in fp32: 3"));
    CHECK(says(only(slow), " TFLOP/s, 7"));
  }
}

TEST_CASE("GPUs of one host are compared with each other") {
  hosts_with_gpus eight(1, 8), two(1, 2);
  eight.scale(0, 5, "gemm", 0.7);
  two.scale(0, 1, "gemm", 0.7);
  CHECK(says(only(eight), "GPU 5 "));
  CHECK(only(two).hosts == numbers{0});
  CHECK(says(only(two), "GPU 1 "));
}

TEST_CASE("of two hosts with one GPU each, both are named; with more, the host of the slow one") {
  hosts_with_gpus one(2, 1), eight(2, 8);
  one.scale(1, 0, "gemm", 0.7);
  eight.scale(1, 6, "gemm", 0.7);
  CHECK(only(one).hosts == numbers{0, 1});
  CHECK(says(only(one), "n1: GPU 0 "));
  CHECK(only(eight).hosts == numbers{1});
  CHECK(says(only(eight), "GPU 6 "));
}

TEST_CASE("all GPUs of a host may be slow") {
  hosts_with_gpus two(2, 8), three(3, 8);
  for (std::uint32_t g = 0; g < 8; ++g) {
    two.scale(0, g, "gemm", 0.7);
    three.scale(1, g, "gemm", 0.7);
  }
  CHECK(only(two).hosts == numbers{0, 1});
  CHECK(says(only(two), "n0: median of its 8 GPUs"));
  const auto found = three.found();
  CHECK(found.size() == 8);
  for (const finding& f : found) CHECK(f.hosts == numbers{1});
}

TEST_CASE("GPUs of another model or kind are not compared") {
  hosts_with_gpus mixed(8, 1);
  mixed.gpu(2, 0)["before"]["name"] = "an older GPU";
  mixed.scale(2, 0, "gemm", 0.3);
  CHECK(mixed.found().empty());
  mixed.gpu(2, 0)["before"]["name"] = "A GPU";
  mixed.gpu(2, 0)["kind"] = "toy";
  CHECK(mixed.found().empty());
}

TEST_CASE("a GPU that others use is told from a slow one by its evidence") {
  hosts_with_gpus used(8, 2);
  used.scale(4, 1, "gemm", 0.4);
  used.gpu(4, 1)["before"]["utilisation"] = 0.98;
  used.gpu(4, 1)["before"]["memory_used_bytes"] = 61e9;
  CHECK(says(only(used), "other programs use it: before, kernels ran for 98 % of the time and 61.0 GB of 80.0 GB "
                         "were in use"));
}

TEST_CASE("a host whose GPUs cannot be timed is named with the reason") {
  hosts_with_gpus one(4, 2), all(4, 2), failing(4, 2), none(4, 2);
  one.gpu(1, 1)["error"] = "CUDA, computing: an illegal memory access";
  one.gpu(1, 1)["gemm"] = nullptr;
  all.lack(2, "the driver is too old", true);
  failing.lack(2, "counting failed", false);
  none.lack(2, "there is no driver", true);
  failing.facts[2].description["gpus"] = json::array();
  none.facts[2].description["gpus"] = json::array();
  CHECK(only(one).hosts == numbers{1});
  CHECK(only(one).check == "gpu");
  CHECK(only(one).evidence ==
        "GPU 1 (A GPU): not timed: CUDA, computing: an illegal memory access; meanwhile its temperature 60 degrees C");
  CHECK(only(all).hosts == numbers{2});
  CHECK(only(all).evidence == "GPUs: not timed: the driver is too old");
  CHECK(failing.found().size() == 1);
  CHECK(none.found().empty()); // its driver lists none either
}
