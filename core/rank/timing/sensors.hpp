// SPDX-License-Identifier: Apache-2.0
//
// Reads the sensors of a rank's GPU when the timed region begins and ends, and once a second in between. The readings
// in between are on a separate thread, so that no step waits for them.
#pragma once

#include "device/device.hpp"
#include "measure/gpu.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace regatta {

class sensor_watch {
public:
  // Reads once. `d` must outlive this object; if it is null or has no sensors, nothing is read.
  explicit sensor_watch(device* d);
  // Call begin() and end() alternately, from one thread; a further pair adds to the figures. Each reads the sensors,
  // which takes milliseconds.
  void begin();
  void end();
  // Returns the figures over all intervals so far; std::nullopt if nothing is read. Do not call it between begin() and
  // end().
  std::optional<gpu_figures> figures() const;

private:
  device* device_;
  std::optional<sensor_readings> readings_; // used by the thread between begin() and end()
  std::mutex mutex_;                        // guards only the wait
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

} // namespace regatta
