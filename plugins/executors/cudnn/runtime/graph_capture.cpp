// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_capture.hpp"

namespace cudnn {
namespace {

// Returns whether e is no error. Otherwise clears the error, which CUDA would report again after the next launch.
bool good(cudaError_t e, std::string& refused) {
  if (e == cudaSuccess) return true;
  cudaGetLastError();
  if (refused.empty()) refused = cudaGetErrorString(e);
  return false;
}

} // namespace

captured_graph::~captured_graph() {
  if (graph_) cudaGraphExecDestroy(graph_);
}

// Other threads may allocate memory and query events during a capture, so only calls of this thread may break it. A
// wait for the whole device would break it from any thread; none of them does that.
bool captured_graph::begin(cudaStream_t s, std::string& refused) {
  return good(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), refused);
}

void captured_graph::end(cudaStream_t s, std::string& refused) {
  if (!refused.empty()) cudaGetLastError(); // clear a library's error, else the next check of a launch reports it
  cudaGraph_t captured = nullptr;
  if (good(cudaStreamEndCapture(s, &captured), refused) && refused.empty() &&
      !good(cudaGraphInstantiate(&graph_, captured, 0), refused))
    graph_ = nullptr;
  if (captured) cudaGraphDestroy(captured);
}

void captured_graph::replay(cudaStream_t s) const {
  cuda::check(cudaGraphLaunch(graph_, s), "launching a graph");
}

} // namespace cudnn
