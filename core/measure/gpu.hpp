// SPDX-License-Identifier: Apache-2.0
//
// Figures of a rank's GPU in the timed region, from readings of its sensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <regatta/ext/device.h>

namespace regatta {

// Empty members are unknown. Each number is the mean of the readings, unless noted otherwise.
struct gpu_figures {
  std::string name, driver;
  std::optional<double> utilisation;                           // 0 to 1
  std::optional<double> memory_used_bytes, memory_total_bytes; // the last reading; used by all processes together
  std::optional<double> memory_peak_bytes;                     // the highest memory_used_bytes
  std::optional<double> sm_clock_hz, memory_clock_hz;
  std::optional<double> power_watts;         // energy over time if the GPU counts energy
  std::optional<double> temperature_celsius; // the highest reading
};

struct gpu_member {
  const char* name; // of its key in JSON
  std::optional<double> gpu_figures::*value;
  bool whole;   // the value is a whole number of bytes
  bool highest; // over several runs, the highest counts
};
inline constexpr gpu_member gpu_members[] = {
    {"utilisation", &gpu_figures::utilisation, false, false},
    {"memory_used_bytes", &gpu_figures::memory_used_bytes, true, false},
    {"memory_peak_bytes", &gpu_figures::memory_peak_bytes, true, true},
    {"memory_total_bytes", &gpu_figures::memory_total_bytes, true, false},
    {"sm_clock_hz", &gpu_figures::sm_clock_hz, false, false},
    {"memory_clock_hz", &gpu_figures::memory_clock_hz, false, false},
    {"power_watts", &gpu_figures::power_watts, false, false},
    {"temperature_celsius", &gpu_figures::temperature_celsius, false, true},
};

// An object with a key for each member, null if unknown.
nlohmann::json to_json(const gpu_figures& g);
// Returns what to_json() wrote. Throws failure (run) if a member is missing or of another type.
gpu_figures gpu_from_json(const nlohmann::json& j);

// Collects the readings of the timed region. A pause, such as an evaluation, splits the region into intervals. For each
// interval call begin(), then add() any number of times, then end(). `now` is a time in ns of one monotonic clock.
class sensor_readings {
public:
  // Begins an interval. Only energy, memory and temperature of the reading `s` are used, because its utilisation,
  // clocks and power refer to the time before the interval.
  void begin(const rg_sensors& s, std::int64_t now);
  void add(const rg_sensors& s);
  void end(const rg_sensors& s, std::int64_t now); // adds the reading, and ends the interval
  // Returns the figures of all readings so far. The energy of an interval counts once that has ended.
  gpu_figures figures() const;

private:
  struct mean { // of the values that are not NaN, which means unknown
    double sum = 0, count = 0;
    void add(double value);
    std::optional<double> get() const;
  };
  void keep(const rg_sensors& s); // updates extremes_

  gpu_figures extremes_; // members that are no means: names, last and highest readings
  mean utilisation_, clock_, memory_clock_, power_;
  double energy_ = 0, seconds_ = 0; // J (NaN: unknown) and s of all ended intervals
  double energy_begin_ = 0;         // J at the begin of this interval
  std::int64_t begin_ = 0;          // ns
};

} // namespace regatta
