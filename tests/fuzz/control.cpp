// SPDX-License-Identifier: Apache-2.0
//
// Frames of a rank that has proven itself, from the socket to the end of its run. Lines of the input in turn: a frame's
// header, its payload. A first byte of 0xff: bytes without frames.
#include "base/failure.hpp"
#include "base/json.hpp"
#include "control/handshake.hpp"
#include "input.hpp"
#include "launch/launch.hpp"
#include "launch/launcher_ranks.hpp"

#include <array>
#include <stdexcept>
#include <thread>

#include <csignal>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace regatta;
using nlohmann::json;

namespace {

std::string stream; // what the rank sends in this run

std::string frames_of(fuzz::input in) {
  if (in.empty()) return "";
  const std::string text = in.text();
  if (text[0] == '\xff') return text.substr(1);
  std::string frames;
  for (std::size_t at = 0; at < text.size();) {
    std::array<std::string, 2> parts;
    for (std::string& part : parts) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (at < text.size()) part = text.substr(at, end - at);
      at = end + 1;
    }
    frames += "RGF1";
    for (int i = 0; i < 4; ++i) frames += static_cast<char>(parts[0].size() >> (8 * i));
    for (int i = 0; i < 8; ++i) frames += static_cast<char>(i < 4 ? parts[1].size() >> (8 * i) : 0);
    frames += parts[0] + parts[1];
  }
  return frames;
}

void take_part(const json& invited) {
  asio::io_context io(1);
  tcp::socket socket(io);
  socket.connect(
      {asio::ip::make_address(invited.at("host").get<std::string>()), invited.at("port").get<std::uint16_t>()});
  const json::binary_t& bytes = invited.at("secret").get_binary();
  const blob secret(bytes.begin(), bytes.end());
  asio::co_spawn(io, prove_rank(socket, secret, 0), [](const std::exception_ptr& e) {
    if (e) std::rethrow_exception(e);
  });
  io.run();
  boost::system::error_code ignored;
  asio::write(socket, asio::buffer(stream), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  std::array<char, 4096> answer{};
  while (!ignored) socket.read_some(asio::buffer(answer), ignored);
}

// A process that a launcher started, as core/launch/launcher_ranks.cpp talks to it; here a thread.
void serve(int campaign) {
  std::vector<std::uint8_t> packet(1 << 16);
  for (;;) {
    const ssize_t n = ::recv(campaign, packet.data(), packet.size(), 0);
    if (n <= 0) return;
    const json asked = json::from_cbor(packet.begin(), packet.begin() + n);
    if (asked.at("t") == "end") return;
    try {
      take_part(asked);
    } catch (const std::exception&) { // the coordinator hung up
    }
    const auto answer = json::to_cbor(json{{"code", 0}});
    ::send(campaign, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
}

launcher_ranks& one_rank() {
  static launcher_ranks* const ranks = [] {
    std::signal(SIGPIPE, SIG_IGN);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const socklen_t bytes = sizeof(sa_family_t); // the kernel finds a name
    unique_fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    socklen_t length = sizeof name;
    if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&name), bytes) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0)
      throw std::runtime_error("no socket");
    const int mine = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(mine, reinterpret_cast<sockaddr*>(&name), length) != 0) throw std::runtime_error("no connection");
    const auto hello = json::to_cbor(json{{"rank", 0}});
    ::send(mine, hello.data(), hello.size(), MSG_NOSIGNAL);
    std::thread(serve, mine).detach();
    launcher_process place;
    place.launcher = "fuzz";
    place.size = 1;
    return new launcher_ranks(std::move(listener), place); // until the process ends
  }();
  return *ranks;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stream = frames_of({data, size});
  launch_plan plan;
  plan.ranks = {{"worker 0", {}, json::object()}};
  plan.launcher = &one_rank();
  launch_hooks hooks;
  hooks.progress = [](const std::vector<rank_progress>&) {};
  hooks.log = [](std::uint32_t, int, const std::string&) {};
  try {
    const launch_result r = launch(plan, hooks);
    if (r.failure && r.failure->message.empty()) __builtin_trap();
  } catch (const failure&) {
  }
  return 0;
}
