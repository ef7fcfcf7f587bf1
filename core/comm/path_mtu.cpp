// SPDX-License-Identifier: Apache-2.0
#include "comm/path_mtu.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>

#include "base/descriptor.hpp"
#include "base/json.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

constexpr std::size_t small_payload = 36, largest_payload = 65000;
constexpr int tries = 3;
constexpr auto wait_between = std::chrono::milliseconds(60), wait_at_end = std::chrono::milliseconds(100);

struct numeric_endpoint {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

numeric_endpoint endpoint_of(const std::string& address, std::uint16_t port) {
  numeric_endpoint e;
  auto& four = reinterpret_cast<sockaddr_in&>(e.storage);
  auto& six = reinterpret_cast<sockaddr_in6&>(e.storage);
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    e.bytes = sizeof four;
  } else if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    e.bytes = sizeof six;
  }
  return e;
}

// The payload of a datagram. Other hosts of the same kind of machine read it, so the order of bytes is the machine's.
struct datagram {
  std::uint64_t token; // of this probe, known to the ranks only
  std::uint32_t from;
};

} // namespace

std::vector<arrivals> probe_paths(control_client& control, const std::string& address, std::uint32_t mtu) {
  numeric_endpoint mine = endpoint_of(address, 0);
  const bool four = mine.storage.ss_family == AF_INET;
  const unique_fd fd(::socket(mine.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int probe = four ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE, room = 4 << 20; // sets "do not fragment"
  if (four)
    ::setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
  else
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  std::uint16_t port = 0;
  if (::bind(fd.get(), mine.get(), mine.bytes) == 0 && ::getsockname(fd.get(), mine.get(), &mine.bytes) == 0)
    port = ntohs(four ? reinterpret_cast<sockaddr_in&>(mine.storage).sin_port
                      : reinterpret_cast<sockaddr_in6&>(mine.storage).sin6_port);
  std::array<std::uint8_t, 32> mac{};
  const std::string purpose = "path MTU";
  control.mac(purpose.data(), purpose.size(), mac.data());
  datagram d{0, control.rank()};
  std::memcpy(&d.token, mac.data(), sizeof d.token);

  std::vector<numeric_endpoint> peers;
  for (const blob& b : control.exchange("probe", json::to_cbor(json{{"address", address}, {"port", port}}))) {
    const json j = parse_cbor(b);
    peers.push_back(endpoint_of(j.at("address"), j.at("port")));
  }
  const std::size_t headers = (four ? 20 : 40) + 8;
  const std::size_t full = std::clamp<std::size_t>(mtu > headers ? mtu - headers : 0, small_payload, largest_payload);
  std::vector<arrivals> came(peers.size());
  std::vector<char> buffer(largest_payload + 1);
  const auto receive = [&](std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
      pollfd p{fd.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&p, 1, static_cast<int>(left)) < 0) return;
      for (ssize_t n; (n = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) >= 0;) {
        datagram got{};
        if (static_cast<std::size_t>(n) < sizeof got) continue;
        std::memcpy(&got, buffer.data(), sizeof got);
        if (got.token != d.token || got.from >= came.size()) continue;
        (static_cast<std::size_t>(n) <= small_payload ? came[got.from].small : came[got.from].large) = true;
      }
    }
  };
  std::vector<char> payload(full);
  std::memcpy(payload.data(), &d, sizeof d);
  for (int i = 0; i < tries; ++i) {
    for (std::size_t to = 0; to < peers.size(); ++to)
      if (to != control.rank())
        for (const std::size_t size : {small_payload, full})
          (void)::sendto(fd.get(), payload.data(), size, 0, peers[to].get(), peers[to].bytes);
    receive(wait_between);
  }
  control.barrier("probes sent");
  receive(wait_at_end);
  control.barrier("probes received");
  return came;
}

} // namespace regatta::comm
