// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA runtime that the executor calls; see streams.hpp.
#include "streams.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// A capture by a thread. Stricter than CUDA: the thread may make no other call meanwhile, not even one that CUDA would
// execute immediately, because a replay leaves it out.
struct capture {
  std::vector<std::function<void()>> work;
  bool broken = false;
};
struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};
// The work of a stream. An event is the amount of work that the stream had when it was recorded.
struct CUstream_st {
  std::deque<std::function<void()>> work;
  std::uint64_t given = 0, done = 0;
  std::unique_ptr<capture> captured; // if not null, receives all work
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  std::uint64_t behind = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> when; // when the event passed
};

namespace {

thread_local cudaError_t last_error = cudaSuccess; // CUDA also reports "not ready" here, which is no error as such

struct gpu {
  std::recursive_mutex mutex;
  std::map<CUstream_st*, std::unique_ptr<CUstream_st>> streams;
  std::map<char*, std::size_t> pinned;
};
gpu& the_gpu() {
  static gpu g;
  return g;
}

thread_local CUstream_st* capturing = nullptr; // by this thread
// Breaks this thread's capture, if there is one, and returns whether there is.
bool forbidden() {
  if (!capturing) return false;
  capturing->captured->broken = true;
  last_error = cudaErrorStreamCaptureUnsupported;
  return true;
}
#define REGATTA_NOT_CAPTURED                                                                                           \
  if (forbidden()) return cudaErrorStreamCaptureUnsupported

// With REGATTA_EMULATED_FAILURE=N in the environment, the N-th wait for a stream from then on, and all later ones,
// report that a kernel has failed. The variable counts down to 1.
bool has_failed() {
  const char* const number = std::getenv("REGATTA_EMULATED_FAILURE");
  const int left = number ? std::atoi(number) : 0;
  if (left > 1) setenv("REGATTA_EMULATED_FAILURE", std::to_string(left - 1).c_str(), 1);
  return left == 1;
}

// Runs work of the stream until `behind` of it is done.
void run(CUstream_st* s, std::uint64_t behind) {
  while (s->done < behind) {
    const std::function<void()> work = std::move(s->work.front());
    s->work.pop_front();
    work();
    ++s->done;
  }
}
void run_all() {
  for (auto& [s, owner] : the_gpu().streams) run(s, s->given);
}
// With a seed: streams drawn at random do their next work, a drawn number of times.
void some_go_on() {
  static const char* const seed = std::getenv("REGATTA_EMULATED_GPU");
  if (!seed) return;
  static std::minstd_rand draw(static_cast<std::uint32_t>(std::stoul(seed)));
  auto& streams = the_gpu().streams;
  while (draw() % 4) {
    CUstream_st* const s = std::next(streams.begin(), static_cast<std::ptrdiff_t>(draw() % streams.size()))->first;
    if (s->done < s->given) run(s, s->done + 1);
  }
}
bool is_pinned(const void* p) {
  auto& pinned = the_gpu().pinned;
  const auto after = pinned.upper_bound(static_cast<char*>(const_cast<void*>(p)));
  return after != pinned.begin() && p < std::prev(after)->first + std::prev(after)->second;
}
// Bytes of an allocation that are filled. Only workspaces are larger, and their content is never read.
constexpr std::size_t most_spoilt = std::size_t{16} << 20;

// Calls callbacks once the work before them is done, on a thread of its own that holds no lock during the call.
class caller {
public:
  caller() : thread_([this] { work(); }) {}
  ~caller() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void ask(CUstream_st* s, std::function<void()> f) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back({s, s->given, std::move(f)});
    }
    changed_.notify_all();
  }
  // Returns when all calls that were asked for in this stream have been made. Call it without the GPU's lock.
  void finish(CUstream_st* s) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return current_ != s && std::ranges::none_of(asked_, [&](const call& c) { return c.stream == s; });
    });
  }

private:
  struct call {
    CUstream_st* stream;
    std::uint64_t behind;
    std::function<void()> f;
  };
  void work() {
    for (;;) {
      call next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !asked_.empty(); });
        if (ends_) return;
        next = std::move(asked_.front());
        asked_.pop_front();
        current_ = next.stream;
      }
      {
        const std::lock_guard lock(the_gpu().mutex);
        // A destroyed stream has done its work.
        if (the_gpu().streams.contains(next.stream)) run(next.stream, next.behind);
      }
      next.f();
      {
        const std::lock_guard lock(mutex_);
        current_ = nullptr;
      }
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<call> asked_;
  CUstream_st* current_ = nullptr; // of the call that runs
  bool ends_ = false;
  std::thread thread_;
};
caller& the_caller() {
  the_gpu(); // must outlive the caller
  static caller c;
  return c;
}

#define REGATTA_LOCKED const std::lock_guard lock(the_gpu().mutex)

cudaError_t run_to_the_end(CUstream_st* s) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  if (s) run(s, s->given); // the default stream has no work
  return has_failed() ? cudaErrorIllegalAddress : cudaSuccess;
}

} // namespace

namespace cudnn {

void later(cudaStream_t s, std::function<void()> work) {
  REGATTA_LOCKED;
  if (s->captured) {
    s->captured->broken |= capturing != s; // from another thread: its work would become part of the graph
    s->captured->work.push_back(std::move(work));
    return;
  }
  if (capturing) forbidden(); // to a stream that is not captured
  s->work.push_back(std::move(work));
  ++s->given;
  some_go_on();
}

} // namespace cudnn

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "emulated");
  p->totalGlobalMem = std::size_t{8} << 30;
  p->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int room, int device) {
  std::snprintf(id, static_cast<std::size_t>(room), "0000:%02x:00.0", 0x3a + device);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
  *v = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
  *v = 0;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t e) {
  if (e == cudaSuccess) return "no error";
  return e == cudaErrorStreamCaptureUnsupported ? "operation not permitted when stream is capturing" : "an error";
}
cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  run_all();
  return cudaSuccess;
}

// Fills memory with NaNs, so that nothing is zero by chance.
cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  REGATTA_NOT_CAPTURED;
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*p) return cudaErrorMemoryAllocation;
  std::memset(*p, 0xff, bytes < most_spoilt ? bytes : most_spoilt);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  REGATTA_NOT_CAPTURED;
  cudaDeviceSynchronize(); // as CUDA does
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  REGATTA_LOCKED;
  if (const cudaError_t e = cudaMalloc(p, bytes); e != cudaSuccess) return e;
  the_gpu().pinned[static_cast<char*>(*p)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  return cudaHostAlloc(p, bytes, 0);
}
cudaError_t cudaFreeHost(void* p) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  run_all();
  the_gpu().pinned.erase(static_cast<char*>(p));
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  run_all();
  if (bytes > 0) std::memset(p, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
  cudnn::later(s, [=] {
    if (bytes > 0) std::memset(p, value, bytes);
  });
  return cudaSuccess;
}
// As in CUDA, copies from memory that is not pinned are staged before the call returns; copies to such memory wait for
// the stream.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  if (bytes > 0 && (!to || !from)) return cudaErrorInvalidValue;
  const bool waits = kind == cudaMemcpyDeviceToHost && !is_pinned(to);
  const bool stages = kind == cudaMemcpyHostToDevice && !is_pinned(from);
  if (waits || stages) REGATTA_NOT_CAPTURED;
  if (stages) {
    auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    cudnn::later(s, [=] {
      if (bytes > 0) std::memcpy(to, staged->data(), bytes);
    });
    return cudaSuccess;
  }
  cudnn::later(s, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
  if (waits) run_to_the_end(s);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  REGATTA_LOCKED;
  auto made = std::make_unique<CUstream_st>();
  *s = made.get();
  the_gpu().streams[*s] = std::move(made);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned flags, int) {
  return cudaStreamCreateWithFlags(s, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  run_all();
  the_gpu().streams.erase(s);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  const cudaError_t done = run_to_the_end(s);
  if (s && done == cudaSuccess) the_caller().finish(s); // host functions are work of the stream, too
  return done;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  if (!e->stream) return cudaSuccess;
  cudnn::later(s, [from = e->stream, behind = e->behind] { run(from, behind); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* context) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  the_caller().ask(s, [=] { f(context); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  if (s->captured) return last_error = cudaErrorIllegalState;
  s->captured = std::make_unique<capture>();
  capturing = s;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  REGATTA_LOCKED;
  *graph = nullptr;
  if (capturing != s) return last_error = cudaErrorIllegalState;
  capturing = nullptr;
  const std::unique_ptr<capture> captured = std::move(s->captured);
  if (captured->broken) return last_error = cudaErrorStreamCaptureInvalidated;
  *graph = new CUgraph_st{std::move(captured->work)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  for (const auto& work : graph->work) cudnn::later(s, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  e->when = std::make_shared<std::chrono::steady_clock::time_point>();
  cudnn::later(s, [when = e->when] { *when = std::chrono::steady_clock::now(); });
  e->stream = s;
  e->behind = s->given;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  REGATTA_LOCKED;
  for (const cudaEvent_t e : {from, to})
    if (!e->stream || e->stream->done < e->behind) return last_error = cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(*to->when - *from->when).count();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  if (e->stream) run(e->stream, e->behind);
  return cudaSuccess;
}
// Does some of the missing work, so that a loop of queries ends.
cudaError_t cudaEventQuery(cudaEvent_t e) {
  REGATTA_LOCKED;
  REGATTA_NOT_CAPTURED;
  if (!e->stream || e->stream->done >= e->behind) return cudaSuccess;
  run(e->stream, e->stream->done + 1);
  return last_error = cudaErrorNotReady;
}
}
