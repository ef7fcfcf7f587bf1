// SPDX-License-Identifier: Apache-2.0
//
// The calls of CUDA and NCCL that the transport needs: one stream, and communicators that never block the host. An
// interface, so that tests can check the order of calls without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace nccl {

using communicator = void*; // ncclComm_t

// Functions throw rg::error if NCCL or CUDA fails, unless they are noexcept: RG_E_PEER if a peer or the network is to
// blame, RG_E_CONFIG for wrong arguments such as two ranks on one GPU, RG_E_DEVICE for CUDA, else, also for lack of
// memory, RG_E_OPERATION. The first call of NCCL loads its library: RG_E_UNSUPPORTED if that fails. [main] and [loop],
// one thread at a time. Addresses are device memory, which must stay valid until the operation has been executed.
class medium {
public:
  virtual ~medium() = default;

  // Returns an id for a new communicator. One member makes it and sends it to the others; all members pass it to
  // join().
  virtual std::vector<std::byte> make_id() = 0;
  // Starts to join a communicator as `rank` of `size`, and returns it. It may be used once ready() returns true, which
  // needs all members. End it by finalize() and destroy(), or by abort().
  virtual communicator join(std::span<const std::byte> id, std::uint32_t size, std::uint32_t rank) = 0;
  // Returns whether the last call on the communicator has finished: for an operation, whether it has reached the
  // stream, not whether it has been executed. Throws if the communicator has failed, for example because a peer is
  // gone.
  virtual bool ready(communicator c) = 0;
  // Starts to leave the communicator, together with all members. Call destroy() once ready() returns true.
  virtual void finalize(communicator c) = 0;
  virtual void destroy(communicator c) noexcept = 0;
  // Stops its operations and destroys it. Waits until the stream is idle, so that no operation accesses memory
  // afterwards.
  virtual void abort(communicator c) noexcept = 0;

  // Operations are called between begin_group() and end_group(), and reach the stream together. If one throws, the
  // group is closed. Peers and roots are ranks of the communicator. `from` may be `to`, or the member's own chunk of
  // the buffer that has all chunks.
  virtual void begin_group() = 0;
  virtual void send(communicator c, const void* data, std::uint64_t bytes, std::uint32_t peer) = 0;
  virtual void recv(communicator c, void* data, std::uint64_t bytes, std::uint32_t peer) = 0;
  // A reduction of `count` elements; `type` and `reduction` must pass can_reduce().
  struct elements {
    std::uint64_t count;
    std::uint32_t type, reduction;
  };
  virtual void all_reduce(communicator c, const void* from, void* to, elements e) = 0;
  // Writes `to` on the root only.
  virtual void reduce(communicator c, const void* from, void* to, elements e, std::uint32_t root) = 0;
  // `from` has `e.count` elements for each member, in order of rank; `to` gets the `e.count` sums of this member.
  virtual void reduce_scatter(communicator c, const void* from, void* to, elements e) = 0;
  virtual void all_gather(communicator c, const void* from, void* to, std::uint64_t bytes) = 0; // `bytes`: per member
  // Reads `from` on the root only.
  virtual void broadcast(communicator c, const void* from, void* to, std::uint64_t bytes, std::uint32_t root) = 0;
  // Copies on this rank's device; may be called outside a group, too.
  virtual void copy(const void* from, void* to, std::uint64_t bytes) = 0;
  virtual void end_group() = 0;

  // Makes later work of the stream wait for the fence, which must not be 0. The host does not wait.
  virtual void wait_for(rg_fence fence) = 0;
  // Returns a fence behind all work in the stream so far, never 0. It is valid until the 256th later call of record().
  virtual rg_fence record() = 0;
  // Returns whether the fence has passed; does not wait.
  virtual bool passed(rg_fence fence) = 0;
};

// Returns whether NCCL reduces elements of this type (rg_type) in this way (rg_reduction).
constexpr bool can_reduce(std::uint32_t type, std::uint32_t reduction) noexcept {
  switch (type) {
  case RG_F32:
  case RG_F16:
  case RG_BF16:
  case RG_F64:
  case RG_I32:
  case RG_I64:
  case RG_I8:
  case RG_U8: return reduction >= RG_SUM && reduction <= RG_MAX;
  default: return false;
  }
}

// Opens the medium that calls CUDA and NCCL on GPU `device`, counted from 0. If ranks share a GPU, `shared_by` is this
// rank's number plus 1, which NCCL_HOSTID then contains, so that NCCL takes each rank for a host of its own; else 0.
// Throws RG_E_UNSUPPORTED if there is no usable GPU, RG_E_CONFIG if there is none of this number, and RG_E_DEVICE if
// CUDA fails.
std::unique_ptr<medium> open_medium(std::int32_t device, std::uint32_t shared_by);

// Throws RG_E_UNSUPPORTED if there is no usable GPU. Opens nothing.
void require_device();

} // namespace nccl
