// SPDX-License-Identifier: Apache-2.0
//
// The agent of a host, whose coordinator is the test. No rank runs on the host.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "join/agent.hpp"
#include "join/frames.hpp"
#include "join/packets.hpp"

using namespace regatta;
using namespace std::chrono_literals;
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

// An agent in a thread. Its coordinator is the holder of `coordinator`.
struct served_agent {
  explicit served_agent(unique_fd processes) {
    auto [mine, agents] = connection();
    coordinator = std::move(mine);
    auto setup = std::make_shared<agent_setup>(agent_setup{std::move(processes), std::move(agents), blob(32)});
    end = std::async(std::launch::async, [setup]() -> std::string {
      try {
        return "served: " + std::to_string(run_agent(std::move(*setup)));
      } catch (const failure& e) {
        CHECK(e.code() == exit_code::run);
        return e.what();
      }
    });
    CHECK(receive_frame(coordinator)->header.at("t") == "hello");
  }

  // Begins a run in which this host has no rank.
  void begin_run(std::chrono::milliseconds silence) const {
    const std::vector<std::uint8_t> jobs = json::to_cbor(json::array());
    send_frame(coordinator,
               {{"t", "run"},
                {"ranks", json::array()},
                {"slots", json::array()},
                {"roles", json::array()},
                {"cpus", json::array()},
                {"size", 2},
                {"silence", silence.count()},
                {"start", 120000},
                {"stopped", 10000},
                {"debugged", false},
                {"lasting", false},
                {"nonce", blob(8)}},
               jobs);
  }

  // Receives frames until the next one of this type, and returns it.
  message next(const std::string& type) const {
    for (;;)
      if (message f = *receive_frame(coordinator); f.header.at("t") == type) return f;
  }

  std::future<std::string> end; // what run_agent() returned or threw
  unique_fd coordinator;        // closed first: the agent then ends
};

pipe_ends& never_readable() {
  static pipe_ends pipe = make_pipe();
  return pipe;
}

// Returns a listener for launched processes to which none connects.
unique_fd no_processes() {
  return unique_fd(::dup(never_readable().read.get()));
}

// Returns the text with which the agent refuses a frame during a run.
std::string refusal_of(const json& frame) {
  served_agent agent(no_processes());
  agent.begin_run(3500ms);
  send_frame(agent.coordinator, frame);
  return agent.end.get();
}

// Makes the kernel drop all that arrives at this end of a TCP connection, as a host without power does: it acknowledges
// nothing any more.
void drop_all(const unique_fd& socket) {
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &drop};
  REQUIRE(::setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
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

TEST_CASE("an agent ends if the host of process 0 gives no sign of life during a run, and says for how long") {
  served_agent agent(no_processes());
  agent.begin_run(1000ms);
  agent.next("signs"); // it also acknowledges "run", so that this end repeats nothing
  drop_all(agent.coordinator);
  REQUIRE(agent.end.wait_for(30s) == std::future_status::ready);
  CHECK(agent.end.get().starts_with("the host of process 0 of this launch gave no sign of life for "));
}

TEST_CASE("a coordinator that is stopped for longer than hosts may be silent ends no run") {
  served_agent agent(no_processes());
  agent.begin_run(1000ms);
  // It sends nothing until the agent has sent signs for 2 s. The kernel acknowledges them before they are read.
  for (int signs = 0; signs < 8; ++signs) agent.next("signs");
  send_frame(agent.coordinator, {{"t", "over"}});
  agent.next("over");
  send_frame(agent.coordinator, {{"t", "leave"}});
  CHECK(agent.end.get() == "served: 0");
}

TEST_CASE("an agent tells the coordinator which program each launched process is") {
  const std::string job = fmt::format("agent-test-{}", ::getpid());
  served_agent agent(listen_at(job));
  const json program{{"program SHA-256", "12ab"}};
  const unique_fd process = connect_at(job);
  REQUIRE(process.get() >= 0);
  put(process.get(), {{"slot", 3}, {"who", program}});
  const json joined = agent.next("joined").header;
  CHECK(joined.at("slot") == 3);
  CHECK(joined.at("who") == program);
  send_frame(agent.coordinator, {{"t", "leave"}});
  CHECK(agent.end.get() == "served: 0");
}
