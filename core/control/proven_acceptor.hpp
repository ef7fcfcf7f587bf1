// SPDX-License-Identifier: Apache-2.0
//
// A listening port that lets in connections which prove the secret (control/handshake.hpp). Connections of strangers
// cost little: each has 2 s for its proof, `expected` + 64 of them (fewer if descriptors are short) may wait at a time,
// where a further one drops the oldest, and only the first 20 refusals are logged.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "control/asio.hpp"
#include "control/blob.hpp"
#include "control/handshake.hpp"

namespace regatta {

// Returns the numeric address at the other end of a socket, of IPv4 also on an IPv6 socket; "" if it is not connected.
std::string peer_address(const tcp::socket& socket);

// Used on the thread that runs its io_context. Must outlive the coroutines that it spawns.
class proven_acceptor {
public:
  struct setup {
    std::vector<blob> secrets; // a connection must prove one of them
    std::size_t expected = 1;  // connections that are expected
    // Called with the number that a connection has proven, the index of its secret, and an open socket. Takes the
    // socket over and returns "", or returns the reason why the connection is refused.
    std::function<std::string(const proven_rank& who, tcp::socket& socket)> admit;
    // Runs a coroutine on the io_context.
    std::function<void(asio::awaitable<void>)> spawn;
    // Logs a warning.
    std::function<void(const std::string& text)> warn;
    // Called with the address of each connection that is refused, logged or not; may be empty.
    std::function<void(const std::string& address)> refused = {};
  };

  proven_acceptor(asio::io_context& io, setup s);

  // Listens on a numeric address; port 0: any free one. Throws failure (run) if that is impossible.
  void open(const std::string& address, std::uint16_t port = 0);
  // Takes over a socket that listens already. begin() and port() require open() or adopt().
  void adopt(unique_fd listening);
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  // Spawns the coroutine that accepts connections until close().
  void begin();
  // Stops listening, and drops connections without proof.
  void close();

private:
  // A connection that has not proven the secret yet.
  struct pending_connection {
    explicit pending_connection(tcp::socket s) : socket(std::move(s)), proof_timer(socket.get_executor()) {}
    void drop(); // closes the socket, which ends admit()
    tcp::socket socket;
    asio::steady_timer proof_timer; // drops it if the proof takes too long
    bool proven = false;            // never dropped any more
  };

  asio::awaitable<void> accept();
  bool drop_oldest_pending(); // returns false if there is none to drop
  asio::awaitable<void> admit(std::shared_ptr<pending_connection> s);
  // Logs why a connection is not accepted; only the first 20 times.
  void refuse(const std::string& address, std::uint16_t port, const std::string& why);

  asio::io_context& io_;
  const setup setup_;
  tcp::acceptor acceptor_;
  std::list<std::shared_ptr<pending_connection>> pending_; // the oldest first
  std::size_t refused_ = 0;                                // calls of refuse()
};

} // namespace regatta
