// SPDX-License-Identifier: Apache-2.0
//
// Fences are CUDA events from a ring that is created in advance. An event is reused after `count` records of its ring;
// rg_fence (regatta/abi/base.h) requires that a fence stays valid for at least 256 further records. Functions that
// call CUDA throw rg::error if it reports an error, also one of earlier work on the device: RG_E_OPERATION if memory
// ran out, else RG_E_DEVICE.
#pragma once

#include "../../common/cuda_devices.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

// Fences of one stream, or of several streams of one device. One thread at a time.
class fences {
public:
  enum class kind { plain, timed }; // elapsed() takes fences of kind timed only; they are slightly slower
  // Creates `count` events on the current device.
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

  // Enqueues a fence behind the work that the stream has so far, and returns it; never 0. The fence is invalid after
  // `count` further calls, and once this object is destroyed.
  rg_fence record(cudaStream_t s) {
    const cudaEvent_t e = events_[next_++ % events_.size()];
    cuda::check(cudaEventRecord(e, s), "recording an event");
    return static_cast<rg_fence>(reinterpret_cast<std::uintptr_t>(e));
  }

private:
  std::vector<cudaEvent_t> events_;
  std::size_t next_ = 0;
};

// Returns the event of a fence; null for fence 0.
inline cudaEvent_t event_of(rg_fence f) {
  return reinterpret_cast<cudaEvent_t>(static_cast<std::uintptr_t>(f));
}
// Makes later work of the stream wait for the fence, without synchronizing the host. Does nothing for fence 0.
inline void wait_for(cudaStream_t s, rg_fence f) {
  if (f) cuda::check(cudaStreamWaitEvent(s, event_of(f), 0), "waiting for a fence");
}
// Returns whether the fence has passed, true for fence 0; does not wait.
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

// Returns the nanoseconds from `from` to `to`, negative if `to` passed first. Requires that both fences are of kind
// timed, on the same device, and have passed; fence 0 is not allowed.
inline double elapsed(rg_fence from, rg_fence to) {
  float ms = 0; // CUDA's resolution is about 0.5 us
  cuda::check(cudaEventElapsedTime(&ms, event_of(from), event_of(to)), "reading the time between events");
  return 1e6 * static_cast<double>(ms);
}

// Returns the nanoseconds that the device takes for the work that one call of `enqueue` enqueues in `s`: the mean of
// three calls, after a first call that loads the kernels. Waits for the stream.
template <class F> double time_of(cudaStream_t s, const F& enqueue) {
  constexpr int runs = 3;
  fences points(fences::kind::timed, 2);
  enqueue();
  const rg_fence from = points.record(s);
  for (int i = 0; i < runs; ++i) enqueue();
  const rg_fence to = points.record(s);
  cuda::check(cudaStreamSynchronize(s), "computing");
  return elapsed(from, to) / runs;
}

} // namespace cudnn
