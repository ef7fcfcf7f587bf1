// SPDX-License-Identifier: Apache-2.0
//
// Readings of the sensors of a rank's GPU within the timed region.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <regatta/device.h>

namespace regatta {

// Unknown values are empty. Each member is the mean of the readings, unless noted otherwise.
struct gpu_figures {
  std::string name, driver;
  std::optional<double> utilisation;                           // 0 to 1
  std::optional<double> memory_used_bytes, memory_total_bytes; // the last reading; of all processes
  std::optional<double> memory_peak_bytes;                     // the highest one
  std::optional<double> sm_clock_hz, memory_clock_hz;
  std::optional<double> power_watts;         // from the energy counter if there is one
  std::optional<double> temperature_celsius; // the highest one
};

nlohmann::json to_json(const gpu_figures& g);
gpu_figures gpu_from_json(const nlohmann::json& j); // throws nlohmann::json::exception

// Combines the figures of one rank from several runs: medians, and the highest of highest readings. Requires at least
// one.
gpu_figures over_runs(const std::vector<gpu_figures>& runs);

// Collects the readings of the timed region, in one interval or several.
class sensor_readings {
public:
  // Begins an interval, or continues after a pause. Of this reading only energy, memory and temperature count, because
  // utilisation, clocks and power refer to the time before. `now` in ns.
  void begin(const rg_sensors& s, std::int64_t now);
  void add(const rg_sensors& s);
  void end(const rg_sensors& s, std::int64_t now); // adds the reading, too
  gpu_figures figures() const;

private:
  struct mean {
    double sum = 0, count = 0;
    void add(double value);
    std::optional<double> get() const;
  };
  void keep(const rg_sensors& s);

  gpu_figures extremes_; // values that are no means
  mean utilisation_, clock_, memory_clock_, power_;
  double energy_ = 0, seconds_ = 0; // over completed intervals
  double energy_begin_ = 0;
  std::int64_t begin_ = 0;
};

} // namespace regatta
