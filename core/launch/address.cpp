// SPDX-License-Identifier: Apache-2.0
#include "launch/address.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "base/failure.hpp"
#include "base/text.hpp"

namespace regatta {

namespace {

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

} // namespace

std::string address_of_interface(const std::string& name) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw failure(exit_code::run, "cannot list this machine's network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(first, ::freeifaddrs);

  std::map<std::string, std::vector<std::string>> addresses;
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) addresses[i->ifa_name];
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next)
      if (const auto text = numeric(i->ifa_addr); !text.empty() && i->ifa_addr->sa_family == family)
        addresses[i->ifa_name].push_back(text);
  const auto found = addresses.find(name);
  if (found != addresses.end() && !found->second.empty()) return found->second.front();

  std::string there;
  for (const auto& [interface, of_it] : addresses)
    there += fmt::format("{}{} ({})", there.empty() ? "" : ", ", interface,
                         of_it.empty() ? "no address" : fmt::format("{}", fmt::join(of_it, ", ")));
  throw failure(exit_code::usage,
                found == addresses.end()
                    ? fmt::format("there is no network interface \"{}\"; there are {}", name, there)
                    : fmt::format("network interface \"{}\" has no address; there are {}", name, there));
}

std::vector<std::string> addresses_of_interfaces(const std::string& names) {
  std::vector<std::string> all;
  std::array<char, sizeof(in6_addr)> bytes{};
  for (const std::string& part : split(names, ',')) {
    const std::string name = one_line(part);
    const bool numeric =
        ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 || ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
    const std::string address = numeric ? name : address_of_interface(name);
    if (std::ranges::find(all, address) != all.end())
      throw failure(exit_code::usage, fmt::format("{} occurs twice in \"{}\"", address, names));
    all.push_back(address);
  }
  return all;
}

} // namespace regatta
