// SPDX-License-Identifier: Apache-2.0
//
// The coordinator and the agent of another host, here a thread whose clock is 5000 s ahead.
#include <cmath>
#include <thread>
#include <vector>

#include "control/asio.hpp" // before any other of Asio's

#include <doctest/doctest.h>
#include <fcntl.h>
#include <regatta/clock.hpp>

#include "base/failure.hpp"
#include "clocks/clock_course.hpp"
#include "control/channel.hpp"
#include "join/agent_link.hpp"
#include "join/frames.hpp"
#include "join/remote_host.hpp"
#include "launch/launch.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

constexpr std::int64_t ahead = 5'000'000'000'000; // ns

// Answers as an agent whose only rank sends its result at once, and counts the pings before and after the rank's end.
struct fake_agent {
  explicit fake_agent(bool leaves) : leaves_early(leaves) {}

  asio::awaitable<void> serve(std::shared_ptr<channel> wire) {
    for (;;) {
      const message f = co_await wire->receive();
      const std::string type = f.header.at("t");
      if (type == "ping") {
        ++(ended ? pings_after : pings_before);
        if (ended && leaves_early) co_return wire->close();
        wire->send({{"t", "pong"}, {"at", f.header.at("at")}, {"clock", rg::steady_ns() + ahead}});
        if (pings_before == 8 && !ended) end_rank(*wire);
      } else if (type == "over") {
        over = true;
        if (!answers_late) co_return;
        // Longer than the pause between pings, of which none may come: the next frame is a request between runs.
        asio::steady_timer late(co_await asio::this_coro::executor, std::chrono::milliseconds(900));
        co_await late.async_wait(asio::use_awaitable);
        wire->send({{"t", "over"}});
        co_await count_frames(*wire);
        co_return;
      }
    }
  }

  asio::awaitable<void> count_frames(channel& wire) {
    try {
      for (;; ++frames_after_over) co_await wire.receive();
    } catch (const boost::system::system_error&) { // the coordinator's side has closed the connection
    }
  }

  void end_rank(channel& wire) {
    wire.send({{"t", "started"}, {"rank", 0}, {"pid", 1}});
    wire.send({{"t", "connected"}, {"rank", 0}});
    const blob value = json::to_cbor(json{{"value", 7}});
    wire.send({{"t", "frames"}, {"of", {{0, value.size() + lacking, {{"t", "result"}}}}}},
              std::make_shared<const blob>(value));
    wire.send({{"t", "ended"}, {"rank", 0}, {"how", "exited with code 0"}, {"well", true}});
    wire.send({{"t", "done"}, {"gone", gone}});
    ended = true;
  }

  const bool leaves_early; // the connection ends after "done"
  bool answers_late = false;
  std::size_t lacking = 0;         // bytes of the result that it does not send
  std::vector<std::uint32_t> gone; // launched processes that have ended
  int frames_after_over = 0, pings_before = 0, pings_after = 0;
  bool ended = false, over = false;
};

struct connected_host {
  explicit connected_host(bool leaves_early = false, bool answers_late = false) : agent(leaves_early) {
    tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"), 0});
    tcp::socket mine(io), there(io);
    mine.connect(acceptor.local_endpoint());
    acceptor.accept(there);
    link.name = "n1";
    link.socket = unique_fd(::fcntl(mine.native_handle(), F_DUPFD_CLOEXEC, 3));
    link.secret = blob(32);
    link.slots = {0};
    agent.answers_late = answers_late;
    asio::co_spawn(io, agent.serve(std::make_shared<channel>(std::move(there))), [](const std::exception_ptr&) {});
  }

  launch_result run() {
    launch_plan plan;
    plan.ranks = {{"worker 0", {}, std::make_shared<const json>(json::object()), 0, 0}};
    plan.hosts = {&link};
    std::jthread agents([this] { io.run(); });
    launch_result r = launch(plan, {});
    if (agent.answers_late) link.socket = {};
    agents.join();
    return r;
  }

  asio::io_context io;
  fake_agent agent;
  agent_link link;
};

} // namespace

TEST_CASE("a run compares the clocks at its begin and its end, and returns their offset") {
  connected_host host;
  const launch_result r = host.run();
  CHECK_FALSE(r.failure);
  CHECK(r.results.at(0).at("value") == 7);
  CHECK(host.agent.over);
  CHECK(host.agent.pings_after >= 1); // eight unless the machine is slow
  REQUIRE(r.hosts.size() == 1);
  const timed_host timed = timed_host_from_json(r.hosts[0]);
  CHECK(timed.name == "n1");
  REQUIRE(timed.clock.points.size() >= 9);
  for (const clock_course::point& p : timed.clock.points)
    CHECK(std::abs(p.is.ahead_ns - static_cast<double>(ahead)) <= p.is.uncertainty_ns + 1);
}

TEST_CASE("a host whose agent sends less than it says fails the run by name") {
  connected_host host;
  host.agent.lacking = 1;
  const launch_result r = host.run();
  REQUIRE(r.failure);
  CHECK_MESSAGE(r.failure->message.find("host n1") != std::string::npos, r.failure->message);
  CHECK_MESSAGE(r.failure->message.find("of a frame of rank 0") != std::string::npos, r.failure->message);
}

TEST_CASE("a host that is lost while the clocks are compared after its ranks have ended fails no run") {
  connected_host host(true);
  const launch_result r = host.run();
  CHECK_FALSE(r.failure);
  CHECK(r.results.at(0).at("value") == 7);
  CHECK(host.link.socket.get() < 0);
  CHECK_FALSE(host.link.lost.empty());
}

TEST_CASE("no ping follows the end of a run, however late the agent answers it") {
  connected_host host(false, true);
  const launch_result r = host.run();
  CHECK_FALSE(r.failure);
  CHECK(host.link.lost.empty());
  CHECK(host.agent.over);
  CHECK(host.agent.frames_after_over == 0);
}

TEST_CASE("a host of which a launched process has ended can take part in no further run, and the process is named") {
  connected_host host(false, true);
  host.agent.gone = {5};
  const launch_result r = host.run();
  CHECK_FALSE(r.failure);
  CHECK(host.link.lost == "its launched process 5 has ended");
}

TEST_CASE("a frame that cannot be sent is an error") {
  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::make_address("127.0.0.1"), 0});
  tcp::socket mine(io), there(io);
  mine.connect(acceptor.local_endpoint());
  acceptor.accept(there);
  const unique_fd socket(::fcntl(mine.native_handle(), F_DUPFD_CLOEXEC, 3));
  CHECK_NOTHROW(send_frame(socket, {{"t", "leave"}}));
  there.set_option(asio::socket_base::linger(true, 0)); // close() resets the connection
  there.close();
  mine.wait(tcp::socket::wait_read); // the reset has arrived
  CHECK_THROWS_AS(send_frame(socket, {{"t", "leave"}}), failure);
}
