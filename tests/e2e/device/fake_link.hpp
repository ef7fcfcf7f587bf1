// SPDX-License-Identifier: Apache-2.0
//
// A transport between fake GPUs that works as NCCL does. It reaches device memory only and keeps one order of
// operations. Operations that were posted between two polls are enqueued as one group in a stream of its own, behind
// the fences that they wait for, and complete with a fence. The bytes travel over another transport, on the device's
// thread.
#pragma once

#include "streams.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <regatta/nested.hpp>
#include <regatta/transport.hpp>

namespace fake {

class link {
public:
  struct parameters {
    std::string over = "shm";
  };
  static constexpr auto fields = rg::fields(rg::field("over", &parameters::over, "transport that carries the bytes"));

  link(const rg_host* host, const parameters& p) : inner_(host, p.over.c_str()) {}

  rg_transport_caps caps() const;
  rg_blob listen(const rg_world& world);
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) { inner_.connect(blobs, timeout_ns); }
  rg_status send(const rg_transfer& t) { return post({t, kind::send}); }
  rg_status recv(const rg_transfer& t) { return post({t, kind::recv}); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out);
  void wake() noexcept;
  void cancel(std::uint32_t) {}
  void close(std::uint64_t timeout_ns);
  rg_counters counters() const { return {}; }
  std::uint32_t split(std::span<const std::uint32_t> members);
  rg_status all_reduce(const rg_collective& c) { return post(c, kind::all_reduce); }
  rg_status reduce_scatter(const rg_collective& c) { return post(c, kind::reduce_scatter); }
  rg_status all_gather(const rg_collective& c) { return post(c, kind::all_gather); }
  rg_status broadcast(const rg_collective& c) { return post(c, kind::broadcast); }

private:
  enum class kind { send, recv, all_reduce, reduce_scatter, all_gather, broadcast };
  struct operation {
    rg_transfer transfer; // for a collective: buffer, fence and cookie; peer is the root
    kind what;
  };
  rg_status post(operation o);
  rg_status post(const rg_collective& c, kind what);
  // Called on the device's thread.
  void exchange(std::span<const operation> group);
  void collective(const operation& o);
  void add_up(const operation& o);

  gpu& gpu_ = gpu::instance();
  rg::nested inner_;
  std::size_t stream_ = 0;
  std::uint32_t rank_ = 0, size_ = 0;
  std::vector<operation> posted_;
  std::vector<rg_completion> finished_;
  std::mutex mutex_; // guards woken_
  std::condition_variable wake_up_;
  bool woken_ = false;
};

} // namespace fake
