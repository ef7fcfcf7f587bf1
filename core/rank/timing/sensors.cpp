// SPDX-License-Identifier: Apache-2.0
#include "rank/timing/sensors.hpp"

#include <chrono>

#include <regatta/clock.hpp>
#include <regatta/device.hpp>

namespace regatta {
namespace {

constexpr std::chrono::seconds sensor_period{1}; // NVML averages over the same period

} // namespace

// Reads once, because the first reading may take long: it loads the sensor library.
sensor_watch::sensor_watch(device* d) : device_(d) {
  if (device_ && device_->sensors()) readings_.emplace();
}

void sensor_watch::begin() {
  if (!readings_) return;
  readings_->begin(device_->sensors().value_or(rg::no_sensors()), rg::steady_ns());
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    for (;;) {
      stopped_.wait_for(lock, stop, sensor_period, [] { return false; });
      if (stop.stop_requested()) return;
      if (const auto s = device_->sensors()) readings_->add(*s);
    }
  });
}

void sensor_watch::end() {
  if (!readings_) return;
  thread_ = {}; // stops and joins
  readings_->end(device_->sensors().value_or(rg::no_sensors()), rg::steady_ns());
}

std::optional<gpu_figures> sensor_watch::figures() const {
  if (!readings_) return std::nullopt;
  return readings_->figures();
}

} // namespace regatta
