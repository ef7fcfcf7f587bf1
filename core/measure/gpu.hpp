// SPDX-License-Identifier: Apache-2.0
//
// What the sensors of a rank's GPU said within the timed region.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <regatta/device.h>

namespace regatta {

// What is not known is nothing. Each member is the mean of the readings, but for what says otherwise.
struct gpu_figures {
  std::string name, driver;
  std::optional<double> utilisation;                           // 0 to 1
  std::optional<double> memory_used_bytes, memory_total_bytes; // the last reading; of all processes
  std::optional<double> memory_peak_bytes;                     // the highest one
  std::optional<double> sm_clock_hz, memory_clock_hz;
  std::optional<double> power_watts;         // from the counter of energy where there is one
  std::optional<double> temperature_celsius; // the highest one
};

nlohmann::json to_json(const gpu_figures& g);
gpu_figures gpu_from_json(const nlohmann::json& j); // throws nlohmann::json::exception

// Of the same rank in several runs: medians; of what is the highest reading, the highest. At least one.
gpu_figures over_runs(const std::vector<gpu_figures>& runs);

// The readings of what is measured, in one stretch or several.
class sensor_readings {
public:
  // What is measured begins, or goes on after a pause: of this reading only energy and memory count, since
  // utilisation, clocks and power are of the time before. `now` in ns.
  void begin(const rg_sensors& s, std::int64_t now);
  void add(const rg_sensors& s);
  void end(const rg_sensors& s, std::int64_t now); // adds it, too
  gpu_figures figures() const;

private:
  struct mean {
    double sum = 0, count = 0;
    void add(double value);
    std::optional<double> get() const;
  };
  void keep(const rg_sensors& s);

  gpu_figures extremes_; // what is no mean
  mean utilisation_, clock_, memory_clock_, power_;
  double energy_ = 0, seconds_ = 0; // over what has ended
  double energy_begin_ = 0;
  std::int64_t begin_ = 0;
};

} // namespace regatta
