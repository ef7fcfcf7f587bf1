// SPDX-License-Identifier: Apache-2.0
//
// The agent of a host, whose coordinator is the test. No rank runs on the host.
#include <doctest/doctest.h>

#include <array>
#include <future>
#include <string>

#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "join/agent.hpp"
#include "join/frames.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

// Two ends of a TCP connection.
std::array<unique_fd, 2> connection() {
  const unique_fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener.get(), at, size) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), at, &size) == 0);
  unique_fd mine(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(mine.get(), at, size) == 0);
  return {std::move(mine), unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))};
}

// Returns the text with which the agent refuses a frame during a run in which this host has no rank.
std::string refusal_of(const json& frame) {
  auto [mine, agents] = connection();
  pipe_ends processes = make_pipe(); // never readable
  agent_setup setup{std::move(processes.read), std::move(agents), blob(32)};
  auto served = std::async(std::launch::async, [&]() -> std::string {
    try {
      return "served: " + std::to_string(run_agent(std::move(setup)));
    } catch (const failure& e) {
      CHECK(e.code() == exit_code::run);
      return e.what();
    }
  });
  CHECK(receive_frame(mine)->header.at("t") == "hello");
  const std::vector<std::uint8_t> jobs = json::to_cbor(json::array());
  send_frame(mine,
             {{"t", "run"},
              {"ranks", json::array()},
              {"slots", json::array()},
              {"roles", json::array()},
              {"cpus", json::array()},
              {"size", 2},
              {"silence", 3500},
              {"start", 120000},
              {"stopped", 10000},
              {"debugged", false},
              {"lasting", false},
              {"nonce", blob(8)}},
             jobs);
  send_frame(mine, frame);
  return served.get();
}

} // namespace

TEST_CASE("a frame for a rank of another host, or without a member, ends the agent with a text that names it") {
  const std::string elsewhere = " for rank 1: expected one of those that run on this host (none)";
  CHECK(refusal_of({{"t", "send"}, {"ranks", {1}}, {"frame", {{"t", "describe"}}}}) ==
        "process 0 of this launch sent a frame \"send\"" + elsewhere);
  CHECK(refusal_of({{"t", "kill"}, {"rank", 1}}) == "process 0 of this launch sent a frame \"kill\"" + elsewhere);
  CHECK(refusal_of({{"t", "kill"}})
            .starts_with("process 0 of this launch sent a frame with a missing or wrong member: "));
}
