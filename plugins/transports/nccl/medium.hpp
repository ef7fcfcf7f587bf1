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

// Every function throws rg::error if NCCL or CUDA fails. [main] and [loop], one thread at a time.
class medium {
public:
  virtual ~medium() = default;

  // Returns an id for a new communicator. One member makes it, and all members pass it to join().
  virtual std::vector<std::byte> make_id() = 0;
  // Starts to join a communicator as `rank` of `size`. It may be used once ready() returns true.
  virtual communicator join(std::span<const std::byte> id, std::uint32_t size, std::uint32_t rank) = 0;
  // Returns whether the last call on the communicator has finished; an operation has finished when it has reached the
  // stream. Throws if the communicator has failed since, for example because a peer is gone.
  virtual bool ready(communicator c) = 0;
  // Starts to leave the communicator, together with all members. Call destroy() once ready() returns true.
  virtual void finalize(communicator c) = 0;
  virtual void destroy(communicator c) noexcept = 0;
  // Stops its operations: after the call they do not access memory any more.
  virtual void abort(communicator c) noexcept = 0;

  // Operations between begin_group and end_group reach the stream together. Peers are ranks of the communicator.
  virtual void begin_group() = 0;
  virtual void send(communicator c, const void* data, std::uint64_t bytes, std::uint32_t peer) = 0;
  virtual void recv(communicator c, void* data, std::uint64_t bytes, std::uint32_t peer) = 0;
  virtual void all_reduce(communicator c, float* data, std::uint64_t count) = 0; // in place, sum
  // In place: `data` has a chunk of `count` elements or `bytes` for each member; this member's chunk is number `rank`.
  virtual void reduce_scatter(communicator c, float* data, std::uint64_t count, std::uint32_t rank) = 0;
  virtual void all_gather(communicator c, std::byte* data, std::uint64_t bytes, std::uint32_t rank) = 0;
  virtual void reduce(communicator c, float* data, std::uint64_t count,
                      std::uint32_t root) = 0; // in place, the sum at the root
  virtual void broadcast(communicator c, void* data, std::uint64_t bytes, std::uint32_t root) = 0;
  virtual void end_group() = 0;

  // Makes later work of the stream wait for the fence.
  virtual void wait_for(rg_fence fence) = 0;
  // Returns a fence behind all work in the stream so far. It is valid until 256 more have been made.
  virtual rg_fence record() = 0;
  virtual bool passed(rg_fence fence) = 0;

  // to_device() copies a short message to device memory, which holds one message at a time, and returns its address.
  // to_host() copies it back. Both wait until the stream has done it.
  virtual void* to_device(std::span<const std::byte> data) = 0;
  virtual void to_host(std::span<std::byte> data) = 0;
};

// Opens the medium that calls CUDA and NCCL on GPU `device`. If ranks share a GPU, `shared_by` is this rank's number
// plus 1, else 0. Throws RG_E_UNSUPPORTED if there is no usable GPU, and RG_E_CONFIG if there is none of this number.
std::unique_ptr<medium> open_medium(std::int32_t device, std::uint32_t shared_by);

// Throws RG_E_UNSUPPORTED if there is no usable GPU. Opens nothing.
void require_device();

} // namespace nccl
