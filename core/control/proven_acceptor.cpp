// SPDX-License-Identifier: Apache-2.0
#include "control/proven_acceptor.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/failure.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto proof_limit = 2s; // from accepting a connection to its proof of the secret
constexpr std::size_t pending_beyond_expected = 64;
constexpr std::size_t refusals_logged = 20;
constexpr auto accept_pause = 100ms; // if no descriptor is free

} // namespace

std::string peer_address(const tcp::socket& socket) {
  boost::system::error_code error;
  const asio::ip::address a = socket.remote_endpoint(error).address();
  if (error) return "";
  if (a.is_v6() && a.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, a.to_v6()).to_string();
  return a.to_string();
}

void proven_acceptor::pending_connection::drop() {
  boost::system::error_code ignored;
  socket.close(ignored);
  proof_timer.cancel();
}

proven_acceptor::proven_acceptor(asio::io_context& io, setup s) : io_(io), setup_(std::move(s)), acceptor_(io) {}

void proven_acceptor::open(const std::string& address, std::uint16_t port) {
  try {
    const tcp::endpoint where(asio::ip::make_address(address), port);
    acceptor_.open(where.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true)); // connections in TIME_WAIT do not block the port
    acceptor_.bind(where);
    acceptor_.listen();
  } catch (const boost::system::system_error& e) {
    throw failure(exit_code::run,
                  port ? fmt::format("cannot listen on {} port {}: {}", address, port, e.code().message())
                       : fmt::format("cannot listen on {}: {}", address, e.code().message()));
  }
}

void proven_acceptor::adopt(unique_fd listening) {
  int family = AF_INET;
  socklen_t bytes = sizeof family;
  ::getsockopt(listening.get(), SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  acceptor_.assign(family == AF_INET6 ? tcp::v6() : tcp::v4(), listening.release());
}

void proven_acceptor::begin() {
  setup_.spawn(accept());
}

void proven_acceptor::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (const auto& s : pending_)
    if (!s->proven) s->drop();
}

asio::awaitable<void> proven_acceptor::accept() {
  asio::steady_timer pause(io_);
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const std::size_t most_pending = std::min<std::size_t>(setup_.expected + pending_beyond_expected,
                                                         std::max<std::size_t>(descriptors.rlim_cur / 4, 4));
  while (acceptor_.is_open()) {
    boost::system::error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    // If unproven connections hold all descriptors, close the oldest, and accept the next.
    if (error == asio::error::no_descriptors && drop_oldest_pending()) {
      pause.expires_after(0s); // its coroutine must run to release the descriptor
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    if (error) {
      setup_.warn(fmt::format("cannot accept a connection: {}", error.message()));
      pause.expires_after(accept_pause);
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    if (pending_.size() >= most_pending) drop_oldest_pending();
    auto s = std::make_shared<pending_connection>(std::move(socket));
    pending_.push_back(s);
    setup_.spawn(admit(std::move(s)));
  }
}

// Closes the oldest unproven connection. It is the least likely to be an expected one, which sends its proof at once,
// and connects again if it is dropped.
bool proven_acceptor::drop_oldest_pending() {
  const auto oldest = std::ranges::find_if(pending_, [](const auto& s) { return !s->proven && s->socket.is_open(); });
  if (oldest == pending_.end()) return false;
  (*oldest)->drop();
  return true;
}

asio::awaitable<void> proven_acceptor::admit(std::shared_ptr<pending_connection> s) {
  boost::system::error_code error;
  const std::string address = peer_address(s->socket);
  const std::uint16_t port = s->socket.remote_endpoint(error).port();
  s->proof_timer.expires_after(proof_limit);
  s->proof_timer.async_wait([s](boost::system::error_code cancelled) {
    if (!cancelled && !s->proven) s->drop();
  });

  proven_rank proved;
  std::string why;
  try {
    proved = co_await admit_rank(s->socket, setup_.secrets, s->proven);
  } catch (const boost::system::system_error& e) {
    why = s->socket.is_open() ? e.code().message() : "it did not authenticate in time";
  } catch (const failure& e) {
    why = e.what();
  }
  s->proof_timer.cancel();
  pending_.remove(s);
  if (why.empty() && s->socket.is_open()) why = setup_.admit(proved, s->socket);
  if (!why.empty()) refuse(address, port, why);
}

void proven_acceptor::refuse(const std::string& address, std::uint16_t port, const std::string& why) {
  if (setup_.refused) setup_.refused(address);
  if (++refused_ > refusals_logged) return;
  setup_.warn(fmt::format("refused a connection from {} port {}: {}{}", address, port, why,
                          refused_ == refusals_logged ? "; no more of these are logged" : ""));
}

} // namespace regatta
