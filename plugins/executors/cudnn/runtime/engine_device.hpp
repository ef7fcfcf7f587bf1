// SPDX-License-Identifier: Apache-2.0
//
// A GPU as the engine uses it: memory, streams, and the arithmetic of strategies and optimizers. The public functions
// have the contracts, and the contexts, of the members of rg_device (regatta/ext/device.h) with the same names; the
// constructor that of open(), the destructor that of close(). They report failures as rg::error. Unlike there, work()
// may wait for its stream, if a selection needs more scratch than those before.
#pragma once

#include "runtime/device.hpp"
#include "runtime/fences.hpp"

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <regatta/ext/device.h>

namespace cudnn {

class engine_device {
public:
  static constexpr const char* kind = "cuda";

  engine_device(const rg_host* host, std::int32_t index, std::uint32_t streams);
  ~engine_device();
  engine_device(const engine_device&) = delete;
  engine_device& operator=(const engine_device&) = delete;

  void* allocate(std::uint64_t bytes); // zeroed
  void release(void* address) noexcept;
  void* allocate_host(std::uint64_t bytes);
  void release_host(void* address) noexcept;
  void copy(std::uint32_t stream, void* to, const void* from, std::uint64_t bytes);
  void work(std::uint32_t stream, const rg_work& work);
  void wait_for(std::uint32_t stream, rg_fence fence);
  rg_fence record(std::uint32_t stream);
  bool passed(rg_fence fence);
  void wait(rg_fence fence); // blocks the calling thread
  void notify(std::uint32_t stream, void (*f)(void*), void* context);
  rg_sensors sensors();
  rg_fence mark(std::uint32_t stream);
  double elapsed(rg_fence from, rg_fence to) { return cudnn::elapsed(from, to); } // ns
  void gemm(std::uint32_t stream, const rg_gemm& what, const void* a, const void* b, void* c);
  void* handle(std::uint32_t stream) { return at(stream).stream; }

private:
  struct stream_state {
    cudaStream_t stream = nullptr;
    cublasHandle_t blas = nullptr; // created by the first gemm(): few strategies multiply matrices
    fences points;                 // of record()
    std::optional<fences> marks;   // created by the first mark(): few streams need them
    buffer sums, selection;        // scratch of norms; scratch of selections, which grows with the longest one
  };
  // Makes the device current and returns the stream. Throws rg::error, RG_E_PLUGIN, if there is none of this number.
  stream_state& at(std::uint32_t stream);
  void enter() const { cuda::check(cudaSetDevice(index_), "choosing the device"); }
  // Waits for all streams and frees everything; the constructor calls it, too, if it fails.
  void close() noexcept;
  // work() of kind RG_OP_CONVERT.
  void convert(const stream_state& l, const rg_work& w) const;
  // work() of kind RG_OP_TOP_K or RG_OP_SELECT.
  void select(stream_state& l, const rg_work& w);

  std::int32_t index_;
  std::vector<std::unique_ptr<stream_state>> streams_;
  std::set<void*> allocated_, pinned_;
};

} // namespace cudnn
