// SPDX-License-Identifier: Apache-2.0
//
// Graph capture and replay of parts of steps on the emulated GPU; and that this GPU reports everything that a capture
// must not contain.
#include "runtime/graph_capture.hpp"

#include "streams.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

namespace {

struct stream {
  cudaStream_t s = nullptr;
  stream() { cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); }
  ~stream() { cudaStreamDestroy(s); }
};

} // namespace

TEST_CASE("a replay uses the memory's present contents and the arguments of the capture") {
  stream on;
  cudnn::captured_graph r;
  std::string refused;
  int memory = 0, sum = 0, launches = 0, argument = 100;
  const auto launch = [&] {
    ++launches;
    cudnn::later(on.s, [&, argument] { sum += memory + argument; });
  };
  for (memory = 1; memory <= 4; ++memory, argument = 200) {
    r.run(on.s, launch, refused);
    CHECK(r.captured() == (memory > 1));
    cudaStreamSynchronize(on.s);
  }
  CHECK(refused.empty());
  CHECK(launches == 2); // once directly, once to be captured
  CHECK(sum == 1 + 2 + 3 + 4 + 100 + 3 * 200);
}

TEST_CASE("host functions are work of the stream: a wait for it ends behind them") {
  for (int i = 0; i < 200; ++i) {
    stream on;
    std::atomic<bool> called = false;
    const auto function = [](void* flag) {
      for (int k = 0; k < 100; ++k) std::this_thread::yield(); // long enough that a wait could end before
      *static_cast<std::atomic<bool>*>(flag) = true;
    };
    cudaLaunchHostFunc(on.s, function, &called);
    REQUIRE(cudaStreamSynchronize(on.s) == cudaSuccess);
    REQUIRE(called);
  }
}

TEST_CASE("work that cannot be captured is launched every time, and the reason is reported") {
  stream on, other;
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 4) == cudaSuccess);
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  int plain = 0, on_device = 0;
  const std::function<void()> misuses[] = {
      [&] { cudaStreamSynchronize(on.s); },
      [&] { cudaDeviceSynchronize(); },
      [&] { cudaEventRecord(event, on.s); },
      [&] { cudaStreamWaitEvent(on.s, event, 0); },
      [&] { cudaEventQuery(event); },
      [&] { cudaMemcpyAsync(&on_device, &plain, sizeof plain, cudaMemcpyHostToDevice, on.s); },
      [&] { cudaMemcpyAsync(&plain, &on_device, sizeof plain, cudaMemcpyDeviceToHost, on.s); },
      [&] { cudaMemsetAsync(&on_device, 0, sizeof on_device, other.s); },
      [&] {
        void* more = nullptr;
        if (cudaMalloc(&more, 4) == cudaSuccess) cudaFree(more);
      },
      [&] { throw std::runtime_error("this"); }};
  for (const auto& misuse : misuses) {
    CAPTURE(&misuse - misuses);
    cudnn::captured_graph r;
    std::string refused;
    int done = 0;
    bool captures = false;
    for (int i = 0; i < 3; ++i) {
      captures = i == 1 && refused.empty();
      r.run(
          on.s,
          [&] {
            cudnn::later(on.s, [&] { ++done; });
            if (std::exchange(captures, false)) misuse();
          },
          refused);
      cudaStreamSynchronize(on.s);
      CHECK(done == i + 1);
    }
    CHECK(!r.captured());
    CHECK(!refused.empty());
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  // Pinned memory is read at replay.
  cudnn::captured_graph r;
  std::string refused;
  for (int i = 0; i < 4; ++i) {
    std::memcpy(pinned, &i, sizeof i);
    r.run(
        on.s, [&] { cudaMemcpyAsync(&on_device, pinned, sizeof i, cudaMemcpyHostToDevice, on.s); }, refused);
    cudaStreamSynchronize(on.s);
    CHECK(on_device == i);
  }
  CHECK(r.captured());
  cudaEventDestroy(event);
  cudaFreeHost(pinned);
}
