// SPDX-License-Identifier: Apache-2.0
//
// Frames of a rank that has proven itself, from the socket to the end of its run. Lines of the input in turn: a frame's
// header, its payload. A first byte of 0xff: bytes without frames.
#include "base/failure.hpp"
#include "control/handshake.hpp"
#include "input.hpp"
#include "launch/launch.hpp"
#include "launch/rank_starter.hpp"

#include <array>
#include <stdexcept>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

using namespace regatta;

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

void take_part(const rank_starter::order& o) {
  asio::io_context io(1);
  tcp::socket socket(io);
  socket.connect({asio::ip::make_address(o.host), o.port});
  asio::co_spawn(io, prove_rank(socket, o.secret, 0), [](const std::exception_ptr& e) {
    if (e) std::rethrow_exception(e);
  });
  io.run();
  boost::system::error_code ignored;
  asio::write(socket, asio::buffer(stream), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  std::array<char, 4096> answer{};
  while (!ignored) socket.read_some(asio::buffer(answer), ignored);
}

// Starts the rank as a thread of this process.
class thread_starter : public rank_starter {
public:
  process start(const order& o) override {
    pipe_ends ends = make_pipe();
    process p;
    p.pid = ::getpid();
    p.handle = std::move(ends.read); // readable once the thread has ended
    thread_ = std::thread([o, ended = std::move(ends.write)] {
      try {
        take_part(o);
      } catch (const std::exception&) { // the coordinator hung up
      }
    });
    return p;
  }
  end reap(std::uint32_t) override {
    thread_.join();
    return {"ended", true, false};
  }
  void kill(std::uint32_t) noexcept override {} // it ends when the coordinator hangs up

private:
  std::thread thread_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stream = frames_of({data, size});
  launch_plan plan;
  plan.ranks = {{"worker 0", {}, std::make_shared<const nlohmann::json>(nlohmann::json::object())}};
  static thread_starter starter;
  plan.starter = &starter;
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
