// SPDX-License-Identifier: Apache-2.0
//
// Graph capture and replay of a part of a step. The part's launches never change (staging.hpp), so they are captured
// once and then replayed with one call. Fences are waited for and recorded outside of the graph, so a capture involves
// no other stream.
#pragma once

#include "../../common/cuda_devices.hpp"

#include <string>
#include <utility>

namespace cudnn {

// The captured graph of one part; one thread at a time. Requires that its stream is idle when it is destroyed.
class captured_graph {
public:
  captured_graph() = default;
  ~captured_graph();
  captured_graph(captured_graph&& other) noexcept { *this = std::move(other); }
  captured_graph& operator=(captured_graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(launched_, other.launched_);
    return *this;
  }

  // Enqueues the work of `launch`: kernels, copies between pinned or device memory, and fills. `launch` must enqueue
  // the same work with the same arguments in every call, only in `s`. The first call of run() calls it directly,
  // because libraries load kernels at first use. The second call captures its work and replays it; later calls only
  // replay and do not call `launch`. If CUDA refuses the capture, or `launch` throws a std::exception during it,
  // `refused` gets the reason, and this call (after the attempt) and all later ones call `launch` directly. Several
  // captured graphs may share `refused`: while it is not empty, nothing more is captured, but existing graphs are
  // replayed. Throws what a direct call of `launch` throws, and rg::error, RG_E_DEVICE, if a replay cannot be enqueued.
  template <class F> void run(cudaStream_t s, const F& launch, std::string& refused) {
    if (!graph_ && refused.empty() && std::exchange(launched_, true)) capture(s, launch, refused);
    if (graph_)
      replay(s);
    else
      launch();
  }
  // Returns whether run() replays a graph.
  bool captured() const { return graph_ != nullptr; }

private:
  template <class F> void capture(cudaStream_t s, const F& launch, std::string& refused) {
    if (!begin(s, refused)) return;
    try {
      launch();
    } catch (const std::exception& e) {
      // The operation that broke the capture; a further error shows up at the next launch.
      refused = e.what();
    }
    end(s, refused);
  }
  // begin() starts a capture of the stream, and end() turns what was captured into graph_. If CUDA refuses, they set
  // `refused`; begin() then returns false.
  static bool begin(cudaStream_t s, std::string& refused);
  void end(cudaStream_t s, std::string& refused);
  // Enqueues graph_.
  void replay(cudaStream_t s) const;

  cudaGraphExec_t graph_ = nullptr;
  bool launched_ = false;
};

} // namespace cudnn
