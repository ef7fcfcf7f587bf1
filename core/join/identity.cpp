// SPDX-License-Identifier: Apache-2.0
#include "join/identity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <regatta/abi.h>

#include "launch/cpus.hpp"
#include "launch/memory.hpp"
#include "machine/host.hpp"
#include "registry/inspect.hpp"
#include "report/context.hpp"
#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

std::string name_of_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Returns the address of one end of a socket; "" if it has none.
std::string address_of(int socket, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (get(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "";
  const void* numeric = nullptr;
  if (address.ss_family == AF_INET) numeric = &reinterpret_cast<sockaddr_in&>(address).sin_addr;
  if (address.ss_family == AF_INET6) numeric = &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
  return numeric && ::inet_ntop(address.ss_family, numeric, text.data(), text.size()) ? text.data() : "";
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

} // namespace

json describe_this_program() {
  const json build = build_of_program();
  return {{"regatta", build.at("regatta")},
          {"git", build.at("git")},
          {"build", build.at("build")},
          {"program SHA-256", sha256_of("/proc/self/exe")},
          {"plugin ABI", fmt::format("{}.{}", RG_ABI_MAJOR, RG_ABI_MINOR)}};
}

json describe_this_host(const unique_fd& coordinator) {
  const cpu_supply supply = this_hosts_cpus();
  return {{"host", name_of_host()},
          {"who", describe_this_program()},
          {"cpus", supply.cpus},
          {"limit", std::isinf(supply.limit) ? json(nullptr) : json(supply.limit)},
          {"free_bytes", available_bytes()},
          {"address", address_of(coordinator.get(), ::getsockname)},
          {"peer", address_of(coordinator.get(), ::getpeername)},
          {"description", describe_host(supply.limit)}};
}

std::string differences_of_hosts(const std::vector<std::string>& names, const std::vector<json>& who) {
  std::vector<std::vector<std::string>> rows{{""}};
  rows[0].insert(rows[0].end(), names.begin(), names.end());
  for (const auto& [property, value] : who.front().items()) {
    if (std::ranges::all_of(who, [&, p = property, &v = value](const json& w) { return w.value(p, json()) == v; }))
      continue;
    rows.push_back({property});
    for (const json& w : who) rows.back().push_back(text_of(w.value(property, json())));
  }
  if (rows.size() == 1) return "";
  std::string text;
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    text += "\n ";
    for (std::size_t i = 0; i < row.size(); ++i) text += fmt::format(" {:<{}}", row[i], widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return text;
}

std::vector<std::string> unequal_machines(const std::vector<std::string>& names,
                                          const std::vector<json>& descriptions) {
  std::vector<std::string> warnings;
  for (const char* property :
       {"cpu", "clock_hz", "cores", "memory_bytes", "cgroup_cpus", "governor", "kernel", "libraries"})
    for (std::size_t i = 1; i < names.size(); ++i) {
      const json first = descriptions[0].value(property, json()), mine = descriptions[i].value(property, json());
      // Usable memory and a measured clock differ by little between equal machines.
      const bool rough = std::string_view(property) == "memory_bytes" || std::string_view(property) == "clock_hz";
      const bool same = rough && first.is_number() && mine.is_number()
                            ? std::abs(first.get<double>() / mine.get<double>() - 1) < 0.02
                            : first == mine;
      if (same) continue;
      warnings.push_back(fmt::format("the hosts are not equal machines: {} is {} on {}, and {} on {}", property,
                                     text_of(first), names[0], text_of(mine), names[i]));
      break;
    }
  return warnings;
}

std::string unequal_libraries(const std::vector<std::string>& names, const std::vector<json>& libraries) {
  const auto lacking = [](const json& some, const json& others) {
    std::vector<std::string> own;
    std::ranges::set_difference(some.get<std::vector<std::string>>(), others.get<std::vector<std::string>>(),
                                std::back_inserter(own));
    return own.empty() ? "nothing more" : fmt::format("{}", fmt::join(own, ", "));
  };
  for (std::size_t i = 1; i < names.size(); ++i)
    if (libraries[i] != libraries[0])
      return fmt::format("the hosts are not equal machines: plugins load {} on {}, and {} on {}",
                         lacking(libraries[0], libraries[i]), names[0], lacking(libraries[i], libraries[0]), names[i]);
  return "";
}

} // namespace regatta
