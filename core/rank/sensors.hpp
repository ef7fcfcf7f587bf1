// SPDX-License-Identifier: Apache-2.0
//
// Reads the sensors of a rank's GPU: at both ends of what is measured, and once a second in between, on a thread of its
// own, so that no step ever does.
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
  explicit sensor_watch(device* d); // null, or without sensors: nothing is ever read
  // [one thread] What is measured, begun and ended in turn.
  void begin();
  void end();
  std::optional<gpu_figures> figures() const; // between end and begin

private:
  device* device_;
  std::optional<sensor_readings> readings_; // between begin and end the thread's
  std::mutex mutex_;                        // of nothing but the wait
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

} // namespace regatta
