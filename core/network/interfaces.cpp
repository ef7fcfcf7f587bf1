// SPDX-License-Identifier: Apache-2.0
#include "network/interfaces.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "control/asio.hpp" // before any other of Asio's

#include <arpa/inet.h>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
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

struct found_address {
  std::string interface, text;
};

// Returns the addresses of all interfaces, IPv4 first. An interface without address has one entry with empty text.
// Throws failure (run) if the system refuses.
std::vector<found_address> all_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw failure(exit_code::run, "cannot list this machine's network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(first, ::freeifaddrs);
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

} // namespace regatta
