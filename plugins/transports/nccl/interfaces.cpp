// SPDX-License-Identifier: Apache-2.0
#include "interfaces.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

namespace nccl {
namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address && address->sa_family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address && address->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return bytes && inet_ntop(address->sa_family, bytes, text.data(), text.size()) ? text.data() : "";
}

} // namespace

void choose_interfaces(const rg_world& world) {
  if (const char* chosen = std::getenv("NCCL_SOCKET_IFNAME"); chosen && *chosen) return;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(first, freeifaddrs);
  std::string names;
  for (std::uint32_t a = 0; a < world.address_count; ++a)
    for (const ifaddrs* i = list.get(); i; i = i->ifa_next)
      if (numeric(i->ifa_addr) == world.addresses[a]) {
        names += (names.empty() ? "=" : ",") + std::string(i->ifa_name); // "=": these names, not all that begin so
        break;
      }
  if (!names.empty()) setenv("NCCL_SOCKET_IFNAME", names.c_str(), 1);
}

} // namespace nccl
