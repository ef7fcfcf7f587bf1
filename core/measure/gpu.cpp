// SPDX-License-Identifier: Apache-2.0
#include "measure/gpu.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/json_members.hpp"

namespace regatta {
namespace {

using nlohmann::json;

void keep_known(std::optional<double>& to, double value) {
  if (!std::isnan(value)) to = value;
}
void keep_highest(std::optional<double>& to, double value) {
  if (!std::isnan(value) && !(to && *to > value)) to = value;
}

} // namespace

json to_json(const gpu_figures& g) {
  json j = {{"name", text_or_null(g.name)}, {"driver", text_or_null(g.driver)}};
  for (const gpu_member& m : gpu_members) {
    json& to = j[m.name] = nullptr;
    if (const auto& value = g.*m.value) to = m.whole ? json(static_cast<std::uint64_t>(*value)) : json(*value);
  }
  return j;
}

gpu_figures gpu_from_json(const json& j) {
  gpu_figures g;
  g.name = member<std::optional<std::string>>(j, "name").value_or("");
  g.driver = member<std::optional<std::string>>(j, "driver").value_or("");
  for (const gpu_member& m : gpu_members) take(j, m.name, g.*m.value);
  return g;
}

void sensor_readings::mean::add(double value) {
  if (std::isnan(value)) return;
  sum += value;
  ++count;
}

std::optional<double> sensor_readings::mean::get() const {
  if (count == 0) return std::nullopt;
  return sum / count;
}

void sensor_readings::keep(const rg_sensors& s) {
  extremes_.name = s.name;
  extremes_.driver = s.driver;
  keep_known(extremes_.memory_used_bytes, s.memory_used);
  keep_known(extremes_.memory_total_bytes, s.memory_total);
  keep_highest(extremes_.memory_peak_bytes, s.memory_used);
  keep_highest(extremes_.temperature_celsius, s.temperature);
}

void sensor_readings::begin(const rg_sensors& s, std::int64_t now) {
  keep(s);
  energy_begin_ = s.energy;
  begin_ = now;
}

void sensor_readings::add(const rg_sensors& s) {
  keep(s);
  utilisation_.add(s.utilisation);
  clock_.add(s.clock);
  memory_clock_.add(s.memory_clock);
  power_.add(s.power);
}

void sensor_readings::end(const rg_sensors& s, std::int64_t now) {
  add(s);
  energy_ += s.energy - energy_begin_; // stays NaN if a reading lacks the energy
  seconds_ += 1e-9 * static_cast<double>(now - begin_);
}

gpu_figures sensor_readings::figures() const {
  gpu_figures g = extremes_;
  g.utilisation = utilisation_.get();
  g.sm_clock_hz = clock_.get();
  g.memory_clock_hz = memory_clock_.get();
  g.power_watts = seconds_ > 0 && std::isfinite(energy_) ? std::optional(energy_ / seconds_) : power_.get();
  return g;
}

} // namespace regatta
