// SPDX-License-Identifier: Apache-2.0
#include "comm/preflight_devices.hpp"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "comm/outliers.hpp"
#include "report/rounded.hpp"
#include "results/statistics.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

struct device_rate {
  const char *check, *member, *what, *unit;
};
constexpr device_rate rates[] = {{"gpu_compute", "gemm", "matrix products in fp32", "FLOP/s"},
                                 {"gpu_memory", "copy", "copies within its memory", "B/s"}};

// Returns a reading of the device's sensors, or a number that is 0 or below for an unknown one.
double reading(const json& device, const char* when, const char* sensor) {
  const json& all = device.at(when);
  return all.is_object() && all.at(sensor).is_number() ? all.at(sensor).get<double>() : -1;
}

std::string model_of(const json& device) {
  const json& before = device.at("before");
  return before.is_object() && before.at("name").is_string() ? before.at("name") : device.at("kind");
}

// Returns what may explain a bad figure: begins with "; ", or is empty.
std::string circumstances(const json& device) {
  std::vector<std::string> others, now;
  // The program's own context has allocated memory before the first reading.
  if (const double busy = reading(device, "before", "utilisation"); busy > 0.05)
    others.push_back(fmt::format("kernels ran for {:.0f} % of the time", 100 * busy));
  const double used = reading(device, "before", "memory_used_bytes");
  if (const double total = reading(device, "before", "memory_total_bytes"); total > 0 && used > 0.1 * total)
    others.push_back(fmt::format("{} of {} were in use", human_bytes(used), human_bytes(total)));
  if (const double clock = reading(device, "during", "sm_clock_hz"); clock > 0)
    now.push_back(fmt::format("its clock was {:.0f} MHz", 1e-6 * clock));
  if (const double power = reading(device, "during", "power_watts"); power > 0)
    now.push_back(fmt::format("its power {:.0f} W", power));
  if (const double heat = reading(device, "during", "temperature_celsius"); heat > 0)
    now.push_back(fmt::format("its temperature {:.0f} degrees C", heat));
  std::string text;
  if (!others.empty()) text += fmt::format("; other programs use it: before, {}", fmt::join(others, " and "));
  if (!now.empty()) text += fmt::format("; meanwhile {}", fmt::join(now, ", "));
  return text;
}

struct timed_device {
  std::uint32_t host;
  const json* device;
};

std::string low_text(const device_rate& r, double value, double usual, const std::string& of) {
  const bool tera = usual >= 1e12;
  const double scale = tera ? 1e-12 : 1e-9;
  const char* const prefix = tera ? "T" : "G";
  return fmt::format("{}: {:.3g} {}{}, {:.0f} % of the usual {:.3g} {}{} of {}", r.what, value * scale, prefix, r.unit,
                     100 * value / usual, usual * scale, prefix, r.unit, of);
}

// `devices` are all of one kind and name.
void compare(const device_rate& r, const std::vector<host_facts>& facts, const std::vector<timed_device>& devices,
             std::vector<finding>& found) {
  std::vector<double> values, medians;
  std::map<std::uint32_t, std::vector<double>> of_hosts;
  std::vector<timed_device> timed;
  for (const timed_device& d : devices)
    if (const json& value = d.device->at(r.member); value.is_number()) {
      timed.push_back(d);
      values.push_back(value);
      of_hosts[d.host].push_back(values.back());
    }
  std::vector<std::uint32_t> hosts;
  for (const auto& [host, of_host] : of_hosts) {
    hosts.push_back(host);
    medians.push_back(median(of_host).value_or(0));
  }
  const outlier_rule rule(values);
  bool any = false;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    if (!rule.is_low(values[i])) continue;
    any = true;
    const bool both = timed.size() == 2 && hosts.size() == 2; // one of two: it is unknown which is wrong
    const json& d = *timed[i].device;
    found.push_back(
        {both ? hosts : std::vector{timed[i].host}, r.check,
         fmt::format("{}GPU {} ({}): {}{}", both ? facts[timed[i].host].name + ": " : "", d.at("index").dump(),
                     model_of(d), low_text(r, values[i], rule.usual(), fmt::format("{} GPUs", values.size())),
                     circumstances(d))});
  }
  if (any || hosts.size() != 2) return;
  const outlier_rule of_medians(medians);
  for (std::size_t i = 0; i < 2; ++i)
    if (of_medians.is_low(medians[i]))
      found.push_back({hosts, r.check,
                       fmt::format("{}: median of its {} GPUs ({}): {}", facts[hosts[i]].name,
                                   of_hosts[hosts[i]].size(), model_of(*timed.front().device),
                                   low_text(r, medians[i], of_medians.usual(), "the other host"))});
}

} // namespace

std::vector<finding> findings_of_devices(const std::vector<host_facts>& facts, const std::vector<json>& results) {
  std::vector<finding> found;
  std::map<std::string, std::vector<timed_device>> models;
  for (std::uint32_t h = 0; h < facts.size(); ++h) {
    const bool has_gpus = !facts[h].description.value("gpus", json::array()).empty();
    for (const json& d : results[h].at("host").at("devices")) {
      if (!d.at("index").is_null()) models[d.at("kind").dump() + model_of(d)].push_back({h, &d});
      if (d.at("error").is_null() || (d.at("absent") == true && !has_gpus)) continue;
      const std::string which =
          d.at("index").is_null() ? "GPUs" : fmt::format("GPU {} ({})", d.at("index").dump(), model_of(d));
      found.push_back(
          {{h}, "gpu", fmt::format("{}: not timed: {}{}", which, d.at("error").get<std::string>(), circumstances(d))});
    }
  }
  for (const auto& [model, devices] : models)
    for (const device_rate& r : rates) compare(r, facts, devices, found);
  return found;
}

} // namespace regatta::comm
