// SPDX-License-Identifier: Apache-2.0
//
// Names ranges of time for NVIDIA's profilers, if the toolkit has NVTX 3, which is headers only. Without a profiler a
// range costs two tests of a function pointer.
#pragma once

#include <string>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace cudnn {

// [any] The range from construction to destruction, on the thread that constructs it.
class nvtx_range {
public:
#ifdef NVTX_VERSION
  explicit nvtx_range(const std::string& name) {
    nvtxRangePushA(name.c_str());
  }
  ~nvtx_range() {
    nvtxRangePop();
  }
#else
  explicit nvtx_range(const std::string&) {}
  ~nvtx_range() {}
#endif
  nvtx_range(const nvtx_range&) = delete;
  nvtx_range& operator=(const nvtx_range&) = delete;
};

} // namespace cudnn
