// SPDX-License-Identifier: Apache-2.0
#include "join/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/failure.hpp"
#include "control/asio.hpp" // before any other of Asio's

#include "control/handshake.hpp"
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>

namespace regatta {

unique_fd listen_on_all(std::uint16_t port, std::uint16_t tries, std::uint16_t& used) {
  int error = 0;
  for (std::uint32_t candidate = port; candidate < std::uint32_t{port} + std::max<std::uint32_t>(tries, 1);
       ++candidate) {
    // IPv6 sockets take IPv4 connections as well; a kernel without IPv6 has only the second kind.
    for (const int family : {AF_INET6, AF_INET}) {
      unique_fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (fd.get() < 0) continue;
      const int yes = 1, no = 0;
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      sockaddr_storage any{};
      socklen_t bytes = 0;
      if (family == AF_INET6) {
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        auto& six = reinterpret_cast<sockaddr_in6&>(any);
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(static_cast<std::uint16_t>(candidate));
        bytes = sizeof six;
      } else {
        auto& four = reinterpret_cast<sockaddr_in&>(any);
        four.sin_family = AF_INET;
        four.sin_port = htons(static_cast<std::uint16_t>(candidate));
        bytes = sizeof four;
      }
      if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), bytes) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
        error = errno;
        continue;
      }
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&any), &bytes);
      used = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(any).sin6_port
                                      : reinterpret_cast<sockaddr_in&>(any).sin_port);
      return fd;
    }
  }
  throw failure(exit_code::run, tries > 1 ? fmt::format("cannot listen on any of the ports {} to {}: {}", port,
                                                        port + tries - 1, std::strerror(error))
                                          : fmt::format("cannot listen on port {}: {}", port, std::strerror(error)));
}

unique_fd connect_to(const std::string& host, std::uint16_t port, const blob& secret, std::uint32_t number,
                     std::chrono::milliseconds limit, std::string& why) {
  asio::io_context io{1};
  unique_fd connected;
  std::exception_ptr refused;
  why = "no answer";
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        try {
          tcp::resolver resolver(io);
          const auto found = co_await resolver.async_resolve(host, std::to_string(port), asio::use_awaitable);
          tcp::socket socket(io);
          co_await asio::async_connect(socket, found, asio::use_awaitable);
          co_await prove_rank(socket, secret, number);
          connected = unique_fd(::fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 3));
        } catch (const boost::system::system_error& e) {
          why = e.code().message();
        } catch (const proof_refused&) {
          refused = std::current_exception();
        } catch (const failure& e) {
          why = e.what();
        }
        io.stop();
      },
      asio::detached);
  io.run_for(limit);
  if (refused) std::rethrow_exception(refused);
  if (connected.get() >= 0) notice_lost_host(connected);
  return connected;
}

void notice_lost_host(const unique_fd& socket, std::chrono::milliseconds limit) {
  const auto set = [&](int level, int name, int value) {
    ::setsockopt(socket.get(), level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);  // seconds
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1); // seconds
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limit.count())); // decides in place of TCP_KEEPCNT
}

std::chrono::milliseconds silence_of(const unique_fd& socket) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return {};
  // An acknowledgement that comes with data counts as data only.
  return std::chrono::milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv));
}

} // namespace regatta
