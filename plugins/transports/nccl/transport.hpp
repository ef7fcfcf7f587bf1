// SPDX-License-Identifier: Apache-2.0
//
// Messages and collectives between GPUs in the order in which they are posted, which is the order of NCCL.
//
// One communicator of all ranks and one stream carry all messages. send(), recv() and collectives only queue; poll()
// passes the queue to the stream: consecutive messages become one group of NCCL, and so do consecutive collectives. A
// group starts after the fences of all its operations. An operation completes when it is in the stream; the fence of
// its completion passes when it has been executed. poll() never blocks on the device.
//
// NCCL matches the k-th send to a peer with the k-th receive there, whatever the lane, and a group may wait for all of
// its peers. So all messages must use one lane, and both sides must post operations that belong together in the same
// rounds. A second lane is rejected; other violations block both sides until the engine ends the run.
//
// A sum is bit-identical on all members; NCCL chooses the order of its additions (abi.h asks for ascending order).
#pragma once

#include "medium.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <regatta/transport.hpp>

namespace nccl {

// regatta/transport.hpp specifies the public member functions. After an error in poll(), split() or close(), and after
// cancel(), which ends the operations with all peers, all communicators are aborted, and posts return RG_E_CANCELLED.
// After an error, operations that were posted before complete only in cancel().
class transport {
public:
  // Called by listen() with this rank, to make the medium.
  using opener = std::function<std::unique_ptr<medium>(std::uint32_t rank)>;
  explicit transport(opener open) : open_(std::move(open)) {}
  ~transport();
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  static rg_transport_caps caps();
  rg_blob listen(const rg_world& world);
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns);
  rg_status send(const rg_transfer& t) { return post(t, kind::send); }
  rg_status recv(const rg_transfer& t) { return post(t, kind::recv); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out);
  void wake() noexcept;
  void cancel(std::uint32_t peer);
  void close(std::uint64_t timeout_ns);
  rg_counters counters() const { return counters_; }
  std::uint32_t split(std::span<const std::uint32_t> members);
  rg_status all_reduce(const rg_collective& c) { return post(c, kind::all_reduce); }
  rg_status reduce_scatter(const rg_collective& c) { return post(c, kind::reduce_scatter); }
  rg_status all_gather(const rg_collective& c) { return post(c, kind::all_gather); }
  rg_status broadcast(const rg_collective& c) { return post(c, kind::broadcast); }

private:
  enum class kind { send, recv, all_reduce, reduce_scatter, all_gather, broadcast };
  struct operation {
    kind what;
    std::uint32_t peer, group; // peer of a message or root of a broadcast; group of a collective
    void* address;
    std::uint64_t bytes, element; // of the whole buffer; of one element
    rg_fence after;
    std::uint64_t cookie;
  };
  struct group {
    communicator comm = nullptr;
    std::uint32_t size = 0, index = 0; // index of this rank among the members
  };

  rg_status post(const rg_transfer& t, kind what);
  rg_status post(const rg_collective& c, kind what);
  void advance();
  void launch();
  void landed();
  void check_health();
  void put(const operation& o);
  void put_chunks(const operation& o);
  void await(const char* what, std::uint64_t timeout_ns, const std::function<bool()>& done);
  void abort() noexcept;
  void end(const operation& o, rg_status status, rg_fence fence);
  bool take_wake();

  opener open_;
  std::unique_ptr<medium> medium_;
  std::vector<std::byte> id_; // of the communicator of all ranks, made by rank 0
  std::size_t id_bytes_ = 0;
  std::uint32_t rank_ = 0;
  std::vector<group> groups_; // the first one has all ranks
  std::optional<std::uint32_t> lane_;
  bool aborted_ = false;
  std::vector<operation> posted_, launching_; // in the order of posting; being put into the stream
  std::vector<rg_completion> finished_;       // to be returned by poll()
  std::size_t handed_over_ = 0;
  rg_fence last_ = 0; // fence behind the last group; 0 once it has passed
  rg_counters counters_{};

  std::mutex mutex_; // guards woken_
  std::condition_variable wake_up_;
  bool woken_ = false;
};

} // namespace nccl
