// SPDX-License-Identifier: Apache-2.0
//
// The few calls of CUDA and NCCL that the transport is made of: one stream, and communicators that never block the
// host. A class of its own so that tests see which calls come in which order, without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace nccl {

using communicator = void*; // ncclComm_t

// Every function throws rg::error when NCCL or CUDA refuses. [main] and [loop], one at a time.
class medium {
public:
  virtual ~medium() = default;

  // What all members of a communicator must be given, made by one of them.
  virtual std::vector<std::byte> make_id() = 0;
  // Joins. It may be used once ready() says so.
  virtual communicator join(std::span<const std::byte> id, std::uint32_t size, std::uint32_t rank) = 0;
  // Whether the last call on it is through: has reached the stream, where it is an operation. Throws for what went wrong
  // with the communicator since: a peer that is gone, for one.
  virtual bool ready(communicator c) = 0;
  // Leaves together with the others; to be destroyed once ready().
  virtual void finalize(communicator c) = 0;
  virtual void destroy(communicator c) noexcept = 0;
  // Stops its operations: when this returns they touch no memory any more.
  virtual void abort(communicator c) noexcept = 0;

  // Operations between begin_group and end_group reach the stream together. Peers are ranks of the communicator.
  virtual void begin_group() = 0;
  virtual void send(communicator c, const void* data, std::uint64_t bytes, std::uint32_t peer) = 0;
  virtual void recv(communicator c, void* data, std::uint64_t bytes, std::uint32_t peer) = 0;
  virtual void all_reduce(communicator c, float* data, std::uint64_t count) = 0; // in place, summed
  // In place: `data` is of all members, each of which has `count` of it, this one the part at its rank.
  virtual void reduce_scatter(communicator c, float* data, std::uint64_t count, std::uint32_t rank) = 0;
  virtual void all_gather(communicator c, std::byte* data, std::uint64_t bytes, std::uint32_t rank) = 0;
  virtual void reduce(communicator c, float* data, std::uint64_t count,
                      std::uint32_t root) = 0; // in place, at the root
  virtual void broadcast(communicator c, void* data, std::uint64_t bytes, std::uint32_t root) = 0;
  virtual void end_group() = 0;

  // What comes next in the stream waits for the fence.
  virtual void wait_for(rg_fence fence) = 0;
  // A fence behind everything in the stream so far; valid until 256 more were made.
  virtual rg_fence record() = 0;
  virtual bool passed(rg_fence fence) = 0;

  // A little device memory for messages of the transport's own, one at a time, and the ways there and back; to_host waits
  // for what is in the stream.
  virtual void* to_device(std::span<const std::byte> data) = 0;
  virtual void to_host(std::span<std::byte> data) = 0;
};

// The one that calls CUDA and NCCL, on this device. `shared_by`: 0, or this rank's number from 1, where ranks share the
// GPU. Throws rg::error, RG_E_UNSUPPORTED where there is no such device.
std::unique_ptr<medium> open_medium(std::int32_t device, std::uint32_t shared_by);

// Throws as open_medium would, without opening anything.
void require_device();

} // namespace nccl
