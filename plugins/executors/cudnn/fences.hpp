// SPDX-License-Identifier: Apache-2.0
//
// Fences are CUDA events from a ring that is created in advance. record() reuses an event after `count` further
// records; abi.h (rg_fence) allows that from 256 on.
#pragma once

#include "../../common/cuda_devices.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

class fences {
public:
  enum class kind { plain, timed }; // timed: for elapsed(); slightly slower
  // Creates events on the current device.
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
// Makes later work of the stream wait for the fence, without synchronizing the host. Does nothing for fence 0.
inline void hold(cudaStream_t s, rg_fence f) {
  if (f) cuda::check(cudaStreamWaitEvent(s, event_of(f), 0), "waiting for a fence");
}
// Returns whether the fence has passed; does not wait. Throws for an error of the device.
inline bool passed(rg_fence f) {
  if (!f) return true;
  const cudaError_t e = cudaEventQuery(event_of(f));
  if (e == cudaErrorNotReady) {
    cudaGetLastError(); // clear the error, else the next check of a launch reports it
    return false;
  }
  cuda::check(e, "computing");
  return true;
}

// Returns the nanoseconds between two fences of kind timed. Requires that both have passed.
inline double elapsed(rg_fence from, rg_fence to) {
  float ms = 0; // CUDA's resolution is about 0.5 us
  cuda::check(cudaEventElapsedTime(&ms, event_of(from), event_of(to)), "reading the time between events");
  return 1e6 * static_cast<double>(ms);
}

// Returns the nanoseconds that the work which `give` launches takes: a mean over a few runs after a warm-up run that
// loads the kernels. Waits for the stream.
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
