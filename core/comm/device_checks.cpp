// SPDX-License-Identifier: Apache-2.0
#include "comm/device_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>
#include <regatta/random.hpp>

#include "base/failure.hpp"
#include "measure/gpu.hpp"
#include "rank/model.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

constexpr double window = 0.1;                             // s
constexpr std::uint64_t copied = std::uint64_t{128} << 20; // bytes: more than caches hold
constexpr std::uint64_t random_values = std::uint64_t{1} << 20;
constexpr std::uint64_t least_rows = 256, most_rows = 4096; // of a square matrix; the largest has 64 MiB
constexpr double long_product = 0.02;                       // s: larger matrices would not be faster

using work = std::function<void()>; // enqueues

double seconds_of(device& d, std::uint64_t calls, const work& enqueue) {
  const std::int64_t begin = rg::steady_ns();
  for (std::uint64_t i = 0; i < calls; ++i) enqueue();
  d.synchronize();
  return 1e-9 * static_cast<double>(rg::steady_ns() - begin);
}

struct rate {
  double best = 0;         // of the windows, calls per second
  std::uint64_t calls = 1; // in a window
};

rate rate_of(device& d, const work& enqueue) {
  rate r;
  for (int windows = 0; windows < 3;) {
    const double seconds = seconds_of(d, r.calls, enqueue);
    if (seconds < window) {
      r.calls *= 2;
      continue;
    }
    r.best = std::max(r.best, static_cast<double>(r.calls) / seconds);
    ++windows;
  }
  return r;
}

json readings(device& d) {
  const auto now = d.sensors();
  if (!now) return nullptr;
  sensor_readings r;
  r.add(*now);
  return to_json(r.figures());
}

// Random values: with equal ones a GPU needs less power, and would not show that its power is limited.
void fill(device& d, void* to) {
  std::vector<float> values;
  for (std::uint64_t i = 0; values.size() < random_values; ++i)
    for (const float v : rg::random_uniforms(1, i)) values.push_back(v - 0.5F);
  const std::uint64_t bytes = random_values * sizeof(float);
  for (std::uint64_t at = 0; at < copied; at += bytes) d.write(static_cast<char*>(to) + at, values.data(), bytes);
}

void time_products(device& d, const void* a, void* c, json& to) {
  rg_gemm g{};
  g.a_type = g.b_type = g.c_type = RG_F32;
  g.alpha = 1;
  const auto resize = [&](std::uint64_t rows) { g.m = g.n = g.k = g.a_row = g.b_row = g.c_row = rows; };
  const work multiply = [&] { d.gemm(g, a, a, c); };
  resize(least_rows);
  try {
    seconds_of(d, 1, multiply); // the first product may load a library
  } catch (const failure& f) {
    // A device need not have matrix products.
    if (f.code() != exit_code::plugin && f.code() != exit_code::skipped) throw;
    return;
  }
  // The first product of a size may load a kernel, and another program's work may come before any of them.
  const auto shortest = [&] {
    return std::min({seconds_of(d, 1, multiply), seconds_of(d, 1, multiply), seconds_of(d, 1, multiply)});
  };
  while (g.n < most_rows && shortest() < long_product) resize(2 * g.n);
  const rate r = rate_of(d, multiply);
  to["gemm"] = 2 * static_cast<double>(g.m * g.n * g.k) * r.best;
  for (std::uint64_t i = 0; i < r.calls; ++i) multiply();
  to["during"] = readings(d);
  d.synchronize();
}

// Returns the entry of a device as `f` has changed it, with the reason if it failed.
json attempted(json entry, const std::function<void(json&)>& f) {
  try {
    f(entry);
  } catch (const failure& why) {
    entry["error"] = why.what();
    entry["absent"] = entry.at("index").is_null() && why.code() != exit_code::run;
  } catch (const std::exception& why) {
    entry["error"] = why.what();
  }
  return entry;
}

} // namespace

std::vector<device_executor> executors_of_devices(const registry& plugins) {
  std::set<std::string> kinds;
  for (const component& c : plugins.components())
    if (c.kind == kind::executor && (c.executor.memory & RG_MEMORY_DEVICE) && !c.device.empty()) kinds.insert(c.device);
  std::vector<device_executor> found;
  for (const std::string& k : kinds) {
    train_config train;
    train.device = k;
    const component& first = *executors_for(plugins, train).front();
    found.push_back({k, first.id, first.file.string()});
  }
  return found;
}

void time_device(device& d, json& to) {
  to["before"] = readings(d);
  const auto a = d.allocate_own(copied), c = d.allocate_own(copied);
  try {
    fill(d, a.get());
    time_products(d, a.get(), c.get(), to);
    to["copy"] = static_cast<double>(copied) * rate_of(d, [&] { d.copy(c.get(), a.get(), copied); }).best;
  } catch (...) {
    d.silence(); // the device's streams may still use the memory, so it is freed with the device
    throw;
  }
}

json check_devices(control_client& control, const plan& p) {
  json all = json::array();
  const auto log = [&](int level, const std::string& text) { control.log(level, text); };
  for (const device_executor& e : p.devices) {
    json entry = {{"kind", e.kind},  {"executor", e.id}, {"index", nullptr},  {"error", nullptr}, {"absent", false},
                  {"gemm", nullptr}, {"copy", nullptr},  {"before", nullptr}, {"during", nullptr}};
    train_config train;
    train.device = e.kind;
    train.executor = {e.id};
    control.operation(("loading executor " + e.id).c_str(), pace::rare);
    const registry plugins = registry::of_files({e.file});
    std::int32_t count = 1;
    const json counted = attempted(entry, [&](json&) {
      (void)plugins.find(kind::executor, e.id); // says why its file cannot be loaded
      // device_of() begins again at 0 behind the last device.
      while (device_of(plugins, train, static_cast<std::uint32_t>(count)) == count) ++count;
    });
    if (!counted.at("error").is_null()) all.push_back(counted);
    for (std::int32_t i = 0; i < count && counted.at("error").is_null(); ++i) {
      control.operation(fmt::format("timing {} device {}", e.kind, i).c_str(), pace::rare);
      entry["index"] = i;
      all.push_back(attempted(entry, [&](json& to) {
        const auto d = open_device(plugins, train, i, log, [] {});
        if (!d) throw failure(exit_code::plugin, "executor " + e.id + ": it does not offer the memory of its devices");
        time_device(*d, to);
      }));
    }
  }
  return all;
}

} // namespace regatta::comm
