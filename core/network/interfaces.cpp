// SPDX-License-Identifier: Apache-2.0
#include "network/interfaces.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "control/asio.hpp" // before any other of Asio's

#include <arpa/inet.h>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/descriptor.hpp"
#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace regatta {

namespace {

using interface_list = std::unique_ptr<ifaddrs, void (*)(ifaddrs*)>;

// Returns the addresses of all interfaces; null if the system refuses.
interface_list list_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) first = nullptr;
  return {first, ::freeifaddrs};
}

// Returns the bytes of an IP address; empty for another kind.
std::vector<std::uint8_t> bytes_of(const sockaddr* a) {
  if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6)) return {};
  const bool four = a->sa_family == AF_INET;
  const void* first = four ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(a)->sin_addr)
                           : &reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr;
  std::vector<std::uint8_t> bytes(four ? sizeof(in_addr) : sizeof(in6_addr));
  std::memcpy(bytes.data(), first, bytes.size());
  return bytes;
}

std::vector<std::uint8_t> bytes_of(const std::string& address) {
  for (const int family : {AF_INET, AF_INET6}) {
    std::vector<std::uint8_t> bytes(family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr));
    if (::inet_pton(family, address.c_str(), bytes.data()) == 1) return bytes;
  }
  return {};
}

std::string subnet_of(std::vector<std::uint8_t> address, const std::vector<std::uint8_t>& mask) {
  int bits = 0;
  for (std::size_t i = 0; i < std::min(address.size(), mask.size()); ++i) {
    address[i] &= mask[i];
    bits += __builtin_popcount(mask[i]);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address.size() == sizeof(in_addr) ? AF_INET : AF_INET6, address.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), bits);
}

// Returns the MTU of an interface; 0: unknown.
std::uint32_t mtu_of(const char* interface) {
  const unique_fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  return ::ioctl(fd.get(), SIOCGIFMTU, &request) == 0 ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

// Returns the speed that the kernel says; nullopt: none, as for virtual interfaces (unreadable, or -1).
std::optional<std::uint64_t> speed_of(const char* interface) {
  std::ifstream in(fmt::format("/sys/class/net/{}/speed", interface));
  std::int64_t megabits = -1;
  if (!(in >> megabits) || megabits <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(megabits) * 1'000'000;
}

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address != nullptr && address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) bytes = &six;
  }
  if (bytes == nullptr || ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr) return {};
  return text.data();
}

struct found_address {
  std::string interface, text;
};

// Returns the addresses of all interfaces, IPv4 first. An interface without address has one entry with empty text.
// Throws failure (run) if the system refuses.
std::vector<found_address> all_addresses() {
  const interface_list list = list_interfaces();
  if (!list) throw failure(exit_code::run, "cannot list this machine's network interfaces");
  std::vector<found_address> found;
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next)
      if (const auto text = numeric(i->ifa_addr); !text.empty() && i->ifa_addr->sa_family == family)
        found.push_back({i->ifa_name, text});
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next)
    if (std::ranges::find(found, i->ifa_name, &found_address::interface) == found.end())
      found.push_back({i->ifa_name, ""});
  return found;
}

// Returns whether the numeric address `text` lies in `subnet`, such as "10.1.0.0/16".
bool lies_in(const std::string& subnet, const std::string& text) {
  const std::string own = text + subnet.substr(subnet.find('/'));
  boost::system::error_code wrong;
  if (const auto four = asio::ip::make_network_v4(own, wrong); !wrong)
    return four.canonical() == asio::ip::make_network_v4(subnet, wrong).canonical() && !wrong;
  if (const auto six = asio::ip::make_network_v6(own, wrong); !wrong)
    return six.canonical() == asio::ip::make_network_v6(subnet, wrong).canonical() && !wrong;
  return false;
}

bool is_address(const std::string& text) {
  boost::system::error_code wrong;
  (void)asio::ip::make_address(text, wrong);
  return !wrong;
}

} // namespace

std::string address_of_interface(const std::string& name) {
  const auto all = all_addresses();
  const bool by_subnet = name.find('/') != std::string::npos;
  for (const auto& [interface, text] : all)
    if (!text.empty() && (by_subnet ? lies_in(name, text) : interface == name)) return text;

  std::map<std::string, std::vector<std::string>> addresses;
  for (const auto& [interface, text] : all) {
    auto& of_it = addresses[interface];
    if (!text.empty()) of_it.push_back(text);
  }
  std::string there;
  for (const auto& [interface, of_it] : addresses)
    there += fmt::format("{}{} ({})", there.empty() ? "" : ", ", interface,
                         of_it.empty() ? "no address" : fmt::format("{}", fmt::join(of_it, ", ")));
  throw failure(exit_code::usage,
                by_subnet ? fmt::format("no address of this machine lies in \"{}\"; there are {}", name, there)
                : addresses.count(name)
                    ? fmt::format("network interface \"{}\" has no address; there are {}", name, there)
                    : fmt::format("there is no network interface \"{}\"; there are {}", name, there));
}

std::vector<std::string> global_addresses() {
  std::vector<std::string> all;
  try {
    for (const auto& [interface, text] : all_addresses())
      if (!text.empty() && !text.starts_with("127.") && text != "::1") all.push_back(text);
  } catch (const failure&) { // none
  }
  return all;
}

std::vector<std::string> addresses_of_interfaces(const std::string& names) {
  std::vector<std::string> all;
  for (const std::string& part : split(names, ',')) {
    const std::string name = one_line(part);
    const std::string address = name == "auto" ? "127.0.0.1" : is_address(name) ? name : address_of_interface(name);
    if (std::ranges::find(all, address) != all.end())
      throw failure(exit_code::usage, fmt::format("{} occurs twice in \"{}\"", address, names));
    all.push_back(address);
  }
  return all;
}

address_interface interface_of(const std::string& address) {
  const std::vector<std::uint8_t> wanted = bytes_of(address);
  const interface_list list = list_interfaces();
  for (const ifaddrs* i = list.get(); i != nullptr && !wanted.empty(); i = i->ifa_next) {
    if (bytes_of(i->ifa_addr) != wanted) continue;
    return {i->ifa_name, subnet_of(wanted, bytes_of(i->ifa_netmask)), mtu_of(i->ifa_name), speed_of(i->ifa_name)};
  }
  return {};
}

nlohmann::json links_of_interfaces(const std::string& names) {
  nlohmann::json links = nlohmann::json::array();
  for (const std::string& address : addresses_of_interfaces(names)) {
    const address_interface i = interface_of(address);
    links.push_back({{"address", address},
                     {"name", text_or_null(i.name)},
                     {"bits_per_second", i.bits_per_second ? nlohmann::json(*i.bits_per_second) : nlohmann::json()},
                     {"mtu", i.mtu ? nlohmann::json(i.mtu) : nlohmann::json()}});
  }
  return links;
}

void add_links(nlohmann::json& host, const std::string& names, nlohmann::json links) {
  for (nlohmann::json& link : links) {
    link["key"] = names;
    host["links"].push_back(std::move(link));
  }
}

} // namespace regatta
