// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: a transport with room for one receive and one send to each peer and lane, of which a receive can be
// cancelled (regatta.cancel/1). Messages arrive in memory of its own.
#include "unix.hpp"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace {

struct room_for_one : unix_transport {
  using unix_transport::unix_transport;

  rg_status send(const rg_transfer& t) {
    auto& cookie = sends_[{t.peer, t.lane}];
    if (cookie) return RG_AGAIN;
    const rg_status s = unix_transport::send(t);
    if (s == RG_OK) cookie = t.cookie;
    return s;
  }
  rg_status recv(const rg_transfer& t) {
    if (!t.address && t.bytes) return unix_transport::recv(t); // which refuses it
    receive& r = receives_[{t.peer, t.lane}];
    if (r.wanted) return RG_AGAIN;
    if (!r.posted) { // else the one that was posted for a cancelled receive takes the message of this one
      r.bytes.resize(t.bytes);
      rg_transfer own = t;
      own.address = r.bytes.data();
      if (const rg_status s = unix_transport::recv(own); s != RG_OK) return s;
      r.posted = t.cookie;
    }
    r.wanted = t.cookie;
    r.to = t.address;
    return RG_OK;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (cancelled_) {
      out[0] = {.cookie = std::exchange(cancelled_, 0), .status = RG_E_CANCELLED};
      return 1;
    }
    const std::uint32_t ended = unix_transport::poll(timeout_ns, spin_ns, out);
    std::uint32_t count = 0;
    for (const rg_completion& c : out.first(ended))
      if (const std::uint64_t cookie = end(c)) {
        out[count] = c;
        out[count++].cookie = cookie;
      }
    return count;
  }
  void cancel_operation(std::uint64_t cookie) {
    for (auto& [from, r] : receives_)
      if (r.wanted == cookie) cancelled_ = std::exchange(r.wanted, 0);
  }

private:
  struct receive {
    std::uint64_t posted = 0, wanted = 0; // cookies; 0: none
    void* to = nullptr;
    std::vector<std::byte> bytes;
  };
  // Returns the cookie under which the operation is reported; 0 for a receive that was cancelled.
  std::uint64_t end(const rg_completion& c) {
    for (auto& [to, cookie] : sends_)
      if (cookie == c.cookie) return std::exchange(cookie, 0);
    for (auto& [from, r] : receives_)
      if (r.posted == c.cookie) {
        r.posted = 0;
        if (r.wanted && c.bytes) std::memcpy(r.to, r.bytes.data(), c.bytes);
        return std::exchange(r.wanted, 0);
      }
    return c.cookie;
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sends_; // by peer and lane; 0: none
  std::map<std::pair<std::uint32_t, std::uint32_t>, receive> receives_;
  std::uint64_t cancelled_ = 0;
};

} // namespace

RG_PLUGIN("room_for_one", "1.0", rg::transport<room_for_one>("room_for_one", "nothing wrong: RG_AGAIN at once"))
