// SPDX-License-Identifier: Apache-2.0
//
// Reads the sensors of a rank's GPU at both ends of the timed region and once a second in between. A separate thread
// reads them, so that no step has to.
#pragma once

#include "device/device.hpp"
#include "measure/gpu.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace regatta {

class sensor_watch {
public:
  explicit sensor_watch(device* d); // `d` is null or has no sensors: nothing is read
  // [one thread] Call begin() and end() alternately.
  void begin();
  void end();
  std::optional<gpu_figures> figures() const; // call it between end() and begin()

private:
  device* device_;
  std::optional<sensor_readings> readings_; // used by the thread between begin() and end()
  std::mutex mutex_;                        // guards only the wait
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

} // namespace regatta
