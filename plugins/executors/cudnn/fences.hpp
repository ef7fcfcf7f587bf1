// SPDX-License-Identifier: Apache-2.0
//
// Points in a stream that others wait for: events made beforehand, in turn. One is used again after as many more as
// there are, which abi.h (rg_fence) allows from 256 on.
#pragma once

#include "../../common/cuda_devices.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

class fences {
public:
  enum class kind { plain, timed }; // timed: for elapsed(), and a little slower
  // Of the current device.
  explicit fences(kind k = kind::plain, std::size_t count = 512) : events_(count) {
    const unsigned flags = cudaEventBlockingSync | (k == kind::plain ? cudaEventDisableTiming : 0);
    for (cudaEvent_t& e : events_) cuda::check(cudaEventCreateWithFlags(&e, flags), "making an event");
  }
  ~fences() {
    for (cudaEvent_t e : events_)
      if (e) cudaEventDestroy(e);
  }
  fences(const fences&) = delete;
  fences& operator=(const fences&) = delete;

  rg_fence record(cudaStream_t s) {
    const cudaEvent_t e = events_[next_++ % events_.size()];
    cuda::check(cudaEventRecord(e, s), "recording an event");
    return static_cast<rg_fence>(reinterpret_cast<std::uintptr_t>(e));
  }

private:
  std::vector<cudaEvent_t> events_;
  std::size_t next_ = 0;
};

inline cudaEvent_t event_of(rg_fence f) {
  return reinterpret_cast<cudaEvent_t>(static_cast<std::uintptr_t>(f));
}
// What the stream is given from now on waits for the fence, if there is one.
inline void hold(cudaStream_t s, rg_fence f) {
  if (f) cuda::check(cudaStreamWaitEvent(s, event_of(f), 0), "waiting for a fence");
}
// Whether it has been reached, without waiting. Throws for what went wrong on the device.
inline bool passed(rg_fence f) {
  if (!f) return true;
  const cudaError_t e = cudaEventQuery(event_of(f));
  if (e == cudaErrorNotReady) {
    cudaGetLastError(); // or the next launch would seem to have failed
    return false;
  }
  cuda::check(e, "computing");
  return true;
}

// Nanoseconds between two of a timed kind that have been reached.
inline double elapsed(rg_fence from, rg_fence to) {
  float ms = 0; // CUDA's resolution is about half a microsecond
  cuda::check(cudaEventElapsedTime(&ms, event_of(from), event_of(to)), "reading the time between events");
  return 1e6 * static_cast<double>(ms);
}

// Nanoseconds of one run of what `give` gives the stream: of a few, after a first one that loads it. Waits for them.
template <class F> double time_of(cudaStream_t s, const F& give) {
  constexpr int runs = 3;
  fences points(fences::kind::timed, 2);
  give();
  const rg_fence from = points.record(s);
  for (int i = 0; i < runs; ++i) give();
  const rg_fence to = points.record(s);
  cuda::check(cudaStreamSynchronize(s), "computing");
  return elapsed(from, to) / runs;
}

} // namespace cudnn
