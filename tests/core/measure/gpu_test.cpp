// SPDX-License-Identifier: Apache-2.0
//
// Figures of a GPU from readings of its sensors, made by hand.
#include "measure/gpu.hpp"

#include <limits>

#include <doctest/doctest.h>

using namespace regatta;
using doctest::Approx;

namespace {

rg_sensors reading(double utilisation, double used, double power, double energy) {
  rg_sensors s{};
  s.utilisation = utilisation;
  s.memory_used = used;
  s.power = power;
  s.energy = energy;
  s.clock = s.memory_clock = s.memory_total = s.temperature = std::numeric_limits<double>::quiet_NaN();
  return s;
}

} // namespace

TEST_CASE("readings of sensors: means without what was before, highest and last ones, power by the energy") {
  sensor_readings readings;
  readings.begin(reading(1, 700, 900, 1000), 0);
  readings.add(reading(0.5, 800, 100, 1100));
  readings.end(reading(0.7, 600, 300, 1400), 2'000'000'000);
  gpu_figures g = readings.figures();
  CHECK(*g.utilisation == Approx(0.6));
  CHECK(g.memory_used_bytes == 600.0);
  CHECK(g.memory_peak_bytes == 800.0);
  CHECK(g.power_watts == 200.0); // 400 J in 2 s
  CHECK_FALSE(g.sm_clock_hz);
  CHECK_FALSE(g.temperature_celsius);
  readings.begin(reading(0, 0, 0, 5000), 60'000'000'000); // after an evaluation
  readings.end(reading(0.9, 100, 500, 5500), 62'000'000'000);
  g = readings.figures();
  CHECK(*g.utilisation == Approx(0.7));
  CHECK(g.power_watts == 225.0); // 900 J in 4 s

  const double unknown = std::numeric_limits<double>::quiet_NaN();
  sensor_readings no_energy;
  no_energy.begin(reading(unknown, unknown, 1, unknown), 0);
  no_energy.end(reading(unknown, unknown, 100, unknown), 1'000'000'000);
  g = no_energy.figures();
  CHECK(g.power_watts == 100.0);
  CHECK_FALSE(g.utilisation);
  CHECK_FALSE(g.memory_peak_bytes);
}
