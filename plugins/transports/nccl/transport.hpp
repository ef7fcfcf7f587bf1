// SPDX-License-Identifier: Apache-2.0
//
// Messages and collectives between GPUs in the order in which they are posted, which is the order of NCCL.
//
// One communicator of all ranks and one stream carry all messages. send(), recv() and collectives only queue; poll()
// passes the queue to the stream: consecutive messages become one group of NCCL, and so do consecutive collectives. A
// group starts after the fences of all its operations. An operation completes when it is in the stream; the fence of
// its completion passes when it has been executed. poll() never blocks on the device, except to abort after an error.
//
// NCCL matches the k-th send to a peer with the k-th receive there, whatever the lane, and a group may wait for all of
// its peers. So all messages must use one lane, and both sides must post operations that belong together in the same
// order. A second lane is rejected; other violations block both sides until the engine ends the run.
//
// NCCL chooses the order in which its collectives add: the transport lacks RG_CAP_ASCENDING_SUMS.
#pragma once

#include "medium.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <regatta/transport.hpp>

namespace nccl {

// regatta/transport.hpp specifies the public member functions. After an error in poll() or close(), or while split()
// waits for the other members, and after cancel(), which ends the operations with all peers, all communicators are
// aborted, and posts return RG_E_CANCELLED. After an error, operations that were posted before complete only in
// cancel().
class transport {
public:
  // Called by listen() with this rank, to make the medium.
  using opener = std::function<std::unique_ptr<medium>(std::uint32_t rank)>;
  // Returns the bytes that the first member passed; all members call it. For split().
  using exchange_function =
      std::function<std::vector<std::byte>(std::span<const std::uint32_t> members, std::vector<std::byte> mine)>;
  transport(opener open, exchange_function exchange) : open_(std::move(open)), exchange_(std::move(exchange)) {}
  ~transport();
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  static rg_transport_caps caps();
  rg_blob listen(const rg_world& world);
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns);
  rg_status send(const rg_transfer& t) { return post(t, RG_OP_SEND); }
  rg_status recv(const rg_transfer& t) { return post(t, RG_OP_RECV); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out);
  void wake() noexcept;
  void cancel(std::uint32_t peer);
  void close(std::uint64_t timeout_ns);
  rg_counters counters() const { return counters_; }
  std::uint32_t split(std::span<const std::uint32_t> members);
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept;
  rg_status begin(const rg_collective& c);

private:
  struct operation {
    rg_collective of;    // of.kind: also RG_OP_SEND and RG_OP_RECV; then only addresses, fence and cookie are set
    std::uint32_t peer;  // of a message
    std::uint64_t bytes; // of the message, or of the larger buffer

    bool is_message() const noexcept { return of.kind == RG_OP_SEND || of.kind == RG_OP_RECV; }
  };
  struct group {
    communicator comm = nullptr;
    std::uint32_t size = 0, index = 0; // index of this rank among the members
  };

  // Appends a message to posted_; `kind` is RG_OP_SEND or RG_OP_RECV. Returns as send().
  rg_status post(const rg_transfer& t, std::uint32_t kind);
  // Moves operations from posted_ to the stream and to finished_, as far as possible without waiting. Aborts if it
  // throws.
  void advance();
  // Moves the first messages of posted_, or its first collectives, to launching_, as one NCCL group.
  void launch();
  // Moves the operations of launching_, which have reached the stream, to finished_.
  void complete_launched();
  // Throws rg::error if a communicator has failed.
  void check_health();
  // Calls the medium for one operation, within begin_group() and end_group(); the enqueue_...() do so for collectives.
  void enqueue(const operation& o);
  void enqueue_collective(const rg_collective& c, const group& g);
  void enqueue_reduce_scatter(const rg_collective& c, const group& g);
  void enqueue_all_gather(const rg_collective& c, const group& g);
  void enqueue_messages(const rg_collective& c, const group& g);
  // Does a collective of a group that has one member: copies the source to the target.
  void copy_alone(const rg_collective& c);
  // Blocks until done() returns true. Throws rg::error with status `late` after `deadline`; `what` names in its text
  // what was awaited. Aborts if it throws.
  void await(const char* what, std::chrono::steady_clock::time_point deadline, rg_status late,
             const std::function<bool()>& done);
  // Aborts all communicators. Operations stay where they are.
  void abort() noexcept;
  // Appends the completion of an operation to finished_.
  void end(const operation& o, rg_status status, rg_fence fence);
  // Returns whether wake() was called since the last call.
  bool take_wake();

  opener open_;
  exchange_function exchange_;
  std::unique_ptr<medium> medium_;
  std::vector<std::byte> id_; // of the communicator of all ranks, made by rank 0
  std::size_t id_bytes_ = 0;  // of rank 0's id
  std::uint32_t rank_ = 0;
  std::vector<group> groups_;         // the first one has all ranks
  std::optional<std::uint32_t> lane_; // of all messages; none before the first one
  bool aborted_ = false;
  // Both in the order of posting: not yet passed to NCCL; passed to NCCL as one group, but not yet in the stream.
  std::vector<operation> posted_, launching_;
  std::vector<rg_completion> finished_; // to be returned by poll()
  std::size_t handed_over_ = 0;         // how many of finished_, from the first on, poll() has returned already
  rg_fence last_ = 0;                   // fence behind the last group; 0 once it has passed
  rg_counters counters_{};

  std::mutex mutex_; // guards woken_
  std::condition_variable wake_up_;
  bool woken_ = false;
};

} // namespace nccl
