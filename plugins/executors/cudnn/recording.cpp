// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

namespace cudnn {
namespace {

// Whether it went well; else the error, which CUDA would report once more after the next launch, is forgotten.
bool good(cudaError_t e, std::string& refused) {
  if (e == cudaSuccess) return true;
  cudaGetLastError();
  if (refused.empty()) refused = cudaGetErrorString(e);
  return false;
}

} // namespace

recording::~recording() {
  if (graph_) cudaGraphExecDestroy(graph_);
}

// Other threads allocate and ask for events meanwhile: only what this one does matters, but for waits for the whole
// device, which nobody does.
bool recording::begin(cudaStream_t s, std::string& refused) {
  return good(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), refused);
}

void recording::end(cudaStream_t s, std::string& refused) {
  if (!refused.empty()) cudaGetLastError(); // a library's, that the next launch would report
  cudaGraph_t captured = nullptr;
  if (good(cudaStreamEndCapture(s, &captured), refused) && refused.empty() &&
      !good(cudaGraphInstantiate(&graph_, captured, 0), refused))
    graph_ = nullptr;
  if (captured) cudaGraphDestroy(captured);
}

void recording::play(cudaStream_t s) const {
  cuda::check(cudaGraphLaunch(graph_, s), "launching a graph");
}

} // namespace cudnn
