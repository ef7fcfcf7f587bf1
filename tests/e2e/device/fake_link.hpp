// SPDX-License-Identifier: Apache-2.0
//
// A transport between fake GPUs that works as NCCL does. It reaches device memory only and keeps one order of
// operations. Operations that were posted between two polls are enqueued as one group in a stream of its own, behind
// the fences that they wait for, and complete with a fence. The bytes travel over another transport, on the device's
// thread. Memory that came with a file descriptor is accessed through a mapping of that file, not by its addresses.
#pragma once

#include "streams.hpp"

#include <condition_variable>
#include <cstdint>
#include <map>
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
    bool claims_lanes = false;
  };
  static constexpr auto fields = rg::fields(
      rg::field("over", &parameters::over, "transport that carries the bytes"),
      rg::field("claims_lanes", &parameters::claims_lanes, "says that lanes are independent, which is wrong"));

  link(const rg_host* host, const parameters& p) : inner_(host, p.over.c_str()), claims_lanes_(p.claims_lanes) {}

  rg_transport_caps caps() const;
  rg_blob listen(const rg_world& world);
  void add(rg_region region, void* address, std::uint64_t bytes, const rg_memory& memory);
  void remove(rg_region region) noexcept { windows_.erase(region); }
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) { inner_.connect(blobs, timeout_ns); }
  rg_status send(const rg_transfer& t) { return post({t, RG_OP_SEND, {}}); }
  rg_status recv(const rg_transfer& t) { return post({t, RG_OP_RECV, {}}); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out);
  void wake() noexcept;
  void cancel(std::uint32_t) {}
  void close(std::uint64_t timeout_ns);
  rg_counters counters() const { return {}; }
  std::uint32_t split(std::span<const std::uint32_t> members);
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept;
  rg_status begin(const rg_collective& c);

private:
  struct operation {
    rg_transfer transfer; // of a collective: fence and cookie only
    std::uint32_t kind;   // RG_OP_SEND, RG_OP_RECV or a collective
    rg_collective of;     // of a collective
  };
  // The mapping of a file that holds a region.
  struct window {
    window(int fd, std::uint64_t first, std::uint64_t bytes);
    ~window();
    window(const window&) = delete;
    window& operator=(const window&) = delete;
    void* base;
    std::uint64_t first, room; // the region's place in the mapping, and the mapping's length
  };
  rg_status post(operation o);
  // Returns where this transport accesses the first byte of a buffer.
  void* reach(const rg_buffer& b, void* address) const;
  // Called on the device's thread.
  void exchange(std::span<const operation> group);
  void collective(const rg_collective& c);
  std::vector<float> summed(const rg_collective& c);

  gpu& gpu_ = gpu::instance();
  rg::nested inner_;
  bool claims_lanes_;
  std::map<rg_region, window> windows_;
  std::size_t stream_ = 0;
  std::uint32_t rank_ = 0, size_ = 0;
  std::vector<operation> posted_;
  std::vector<rg_completion> finished_;
  std::mutex mutex_; // guards woken_
  std::condition_variable wake_up_;
  bool woken_ = false;
};

} // namespace fake
