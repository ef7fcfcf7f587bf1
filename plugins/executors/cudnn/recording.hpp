// SPDX-License-Identifier: Apache-2.0
//
// A part of a step as a CUDA graph. What it launches never changes (staging.hpp), so it is captured once, and from then
// on one call gives it to the device. Waiting for fences and telling of them stay outside, so nothing is captured that
// another stream has to do with.
#pragma once

#include "../../common/cuda_devices.hpp"

#include <string>
#include <utility>

namespace cudnn {

class recording {
public:
  recording() = default;
  ~recording();
  recording(recording&& other) noexcept { *this = std::move(other); }
  recording& operator=(recording&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(launched_, other.launched_);
    return *this;
  }

  // Gives `s` what `launch` gives it: kernels, copies between pinned or device memory, fills, always the same and in `s`
  // alone. The first time by launching it, since libraries load kernels when they first run; the second time it is
  // captured, and played from then on. Where CUDA refuses that it is launched as ever, and `refused` says why; where that
  // says something already, nothing is captured any more. Throws what `launch` throws when nothing is captured.
  template <class F> void give(cudaStream_t s, const F& launch, std::string& refused) {
    if (!graph_ && refused.empty() && std::exchange(launched_, true)) capture(s, launch, refused);
    if (graph_)
      play(s);
    else
      launch();
  }
  bool captured() const { return graph_ != nullptr; }

private:
  template <class F> void capture(cudaStream_t s, const F& launch, std::string& refused) {
    if (!begin(s, refused)) return;
    try {
      launch();
    } catch (const std::exception& e) { // what the capture has broken; if more is broken, the next launch says so
      refused = e.what();
    }
    end(s, refused);
  }
  static bool begin(cudaStream_t s, std::string& refused);
  void end(cudaStream_t s, std::string& refused);
  void play(cudaStream_t s) const;

  cudaGraphExec_t graph_ = nullptr;
  bool launched_ = false;
};

} // namespace cudnn
