// SPDX-License-Identifier: Apache-2.0
#include "join/requests.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/failure.hpp"
#include "join/own_path.hpp"
#include "network/interfaces.hpp"
#include "registry/inspect.hpp"
#include "registry/run_in_child.hpp"

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int probe_limit_ms = 4000; // for all connections together

struct socket_address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Returns a numeric address with a port.
socket_address numeric_address(const std::string& text, std::uint16_t port) {
  socket_address a;
  auto& four = reinterpret_cast<sockaddr_in&>(a.storage);
  auto& six = reinterpret_cast<sockaddr_in6&>(a.storage);
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    a.bytes = sizeof four;
  } else if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    a.bytes = sizeof six;
  } else {
    throw failure(exit_code::usage, fmt::format("\"{}\" is no IP address", text));
  }
  return a;
}

// Returns the sums by the paths that process 0 has for these files, own_path().
json sums_of(const json& paths, const json& read, const std::string& built_in) {
  const std::set<std::string> to_read = read;
  json sums = json::object();
  for (const std::string path : paths) {
    const std::string own = own_path(path, built_in);
    std::error_code error;
    if (!fs::exists(own, error))
      sums[path] = nullptr;
    else
      sums[path] = to_read.count(path) && fs::is_regular_file(own, error) ? sha256_of(own) : "";
  }
  return sums;
}

// Returns the names of the shared libraries that a process with these plugins has, sorted: as files, whose names have
// the version, without the plugins. A plugin that cannot be loaded is left out.
json libraries_of(const std::vector<std::string>& plugins) {
  return run_in_child([&](const stage_function& stage) -> json {
    for (const std::string& plugin : plugins) {
      stage(plugin, "was being loaded");
      (void)::dlopen(plugin.c_str(), RTLD_LAZY | RTLD_LOCAL);
    }
    std::set<std::string> names;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const auto path = line.find('/');
      if (path == std::string::npos || line.find(".so", path) == std::string::npos) continue;
      if (std::ranges::find(plugins, line.substr(path)) == plugins.end())
        names.insert(fs::path(line.substr(path)).filename());
    }
    return names;
  });
}

// Begins to connect; returns -1 if that fails at once, with the reason in errno.
unique_fd begin_to_connect(const socket_address& a) {
  unique_fd fd(::socket(a.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() >= 0 && ::connect(fd.get(), a.get(), a.bytes) != 0 && errno != EINPROGRESS) return {};
  return fd;
}

// Connects to all targets at once. Returns why each one failed; "": it did not.
json probe(const json& targets) {
  std::vector<unique_fd> sockets;
  std::vector<std::string> failed;
  for (const json& target : targets) {
    unique_fd fd = begin_to_connect(numeric_address(target.at(0), target.at(1)));
    failed.push_back(fd.get() < 0 ? std::strerror(errno) : "no answer");
    sockets.push_back(std::move(fd));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(probe_limit_ms);
  for (;;) {
    std::vector<pollfd> waiting;
    for (const unique_fd& fd : sockets) waiting.push_back({fd.get(), POLLOUT, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0 || std::ranges::all_of(waiting, [](const pollfd& p) { return p.fd < 0; })) break;
    ::poll(waiting.data(), waiting.size(), static_cast<int>(left));
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (!waiting[i].revents) continue;
      int error = 0;
      socklen_t bytes = sizeof error;
      ::getsockopt(sockets[i].get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
      failed[i] = error ? std::strerror(error) : "";
      sockets[i].reset();
    }
  }
  return failed;
}

} // namespace

json host_requests::answer(const json& request) {
  const std::string type = request.at("t");
  try {
    if (type == "address") return {{"t", "done"}, {"links", links_of_interfaces(request.at("interface"))}};
    if (type == "files")
      return {{"t", "done"}, {"sums", sums_of(request.at("paths"), request.at("read"), request.at("built_in"))}};
    if (type == "libraries") {
      std::vector<std::string> files = request.at("files");
      for (std::string& file : files) file = own_path(file, request.at("built_in"));
      return {{"t", "done"}, {"libraries", libraries_of(files)}};
    }
    if (type == "probe") return {{"t", "done"}, {"failed", probe(request.at("targets"))}};
    if (type == "listen") {
      open_.clear();
      json ports = json::array();
      for (const std::string address : request.at("addresses")) {
        const socket_address a = numeric_address(address, 0);
        unique_fd fd(::socket(a.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        socket_address bound;
        bound.bytes = sizeof bound.storage;
        if (::bind(fd.get(), a.get(), a.bytes) != 0 || ::listen(fd.get(), SOMAXCONN) != 0 ||
            ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes) != 0)
          throw failure(exit_code::run, fmt::format("cannot listen on {}: {}", address, std::strerror(errno)));
        ports.push_back(ntohs(bound.storage.ss_family == AF_INET
                                  ? reinterpret_cast<sockaddr_in&>(bound.storage).sin_port
                                  : reinterpret_cast<sockaddr_in6&>(bound.storage).sin6_port));
        open_.push_back(std::move(fd));
      }
      return {{"t", "done"}, {"ports", ports}};
    }
    return {{"t", "done"}, {"error", fmt::format("unknown request \"{}\"", type)}};
  } catch (const failure& e) {
    return {{"t", "done"}, {"error", e.what()}};
  }
}

} // namespace regatta
