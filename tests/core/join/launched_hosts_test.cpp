// SPDX-License-Identifier: Apache-2.0
//
// The campaign's side of a launch, whose agents are threads of the test.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/failure.hpp"
#include "join/frames.hpp"
#include "join/launched_hosts.hpp"
#include "join/packets.hpp"
#include "join/sockets.hpp"

using namespace regatta;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

// A host of the launch: the frames "joined" of its processes, and its agent's answer to each request. The SHA-256 of
// the agent's program is "12ab".
struct host {
  std::string name;
  std::vector<json> joined;
  std::function<json(const json& request)> answer = [](const json&) { return json{{"t", "done"}}; };
  std::string peer = "10.0.0.0"; // the address of n0 to which it has connected
};

// Serves one host until the launch is over, or the campaign is gone.
void serve(const host& h, std::uint16_t port, const blob& secret) {
  try {
    std::string why;
    const unique_fd campaign = connect_to("127.0.0.1", port, secret, 0, 10s, why);
    send_frame(campaign, {{"t", "hello"},
                          {"host", h.name},
                          {"who", {{"regatta", "0.1.0"}, {"program SHA-256", "12ab"}}},
                          {"cpus", {0}},
                          {"limit", nullptr},
                          {"free_bytes", 1},
                          {"address", "10.0.0." + h.name.substr(1)},
                          {"peer", h.peer},
                          {"description", json::object()}});
    for (const json& process : h.joined) send_frame(campaign, process);
    for (;;) {
      const message request = *receive_frame(campaign);
      if (request.header.at("t") == "leave") return;
      send_frame(campaign, h.answer(request.header));
    }
  } catch (const failure& f) {
    MESSAGE(f.what());
  }
}

// Begins a launch of these hosts and calls `use` with them.
void with_launch(const std::vector<host>& hosts, bool allow_different,
                 const std::function<void(launched_hosts&)>& use) {
  launcher_environment self;
  self.launcher = "test";
  self.job = fmt::format("launched-hosts-test-{}", ::getpid());
  for (const host& h : hosts) self.size += static_cast<std::uint32_t>(h.joined.size());
  const blob secret(32, 7);
  std::uint16_t port = 0;
  launch_meeting meeting{listen_on_all(0, 0, port), listen_at(self.job), secret};
  std::vector<std::jthread> agents; // end after `launched`, which tells them that the launch is over
  for (const host& h : hosts) agents.emplace_back([&h, port, &secret] { serve(h, port, secret); });
  launched_hosts launched(std::move(meeting), self, allow_different);
  use(launched);
}

// Returns the frame with which a host's agent reports a process, and the SHA-256 of its program.
json joined(std::uint32_t slot, const std::string& sum = "12ab") {
  return {{"t", "joined"}, {"slot", slot}, {"pid", 1}, {"who", {{"regatta", "0.1.0"}, {"program SHA-256", sum}}}};
}

// Returns the text of the failure (usage) that `call` throws.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const failure& f) {
    CHECK(f.code() == exit_code::usage);
    return f.what();
  }
  FAIL("not refused");
  return "";
}

} // namespace

TEST_CASE("hosts that cannot reach each other are probed once for each interface") {
  std::atomic<int> probes = 0; // of host n0, which has no connection to n1
  const auto answer = [](const json& request, const std::string& failed) -> json {
    if (request.at("t") == "address")
      return {{"t", "done"}, {"links", json::array({json::object({{"address", request.at("interface")}})})}};
    if (request.at("t") == "listen")
      return {{"t", "done"}, {"ports", std::vector<int>(request.at("addresses").size(), 1)}};
    return {{"t", "done"}, {"failed", {failed}}};
  };
  const host first{"n0", {joined(0)}, [&](const json& request) {
                     probes += request.at("t") == "probe";
                     return answer(request, "no answer");
                   }};
  const host second{"n1", {joined(1)}, [&](const json& request) { return answer(request, ""); }};
  with_launch({first, second}, false, [&](launched_hosts& hosts) {
    const std::string text = refusal([&] { hosts.addresses("10.0.0.9"); });
    CHECK(text.find("\n  n0 (10.0.0.9) cannot connect to n1 (10.0.0.9): no answer") != std::string::npos);
    CHECK(probes == 1);
    CHECK(refusal([&] { hosts.addresses("10.0.0.9"); }) == text);
    CHECK(probes == 1);
    refusal([&] { hosts.addresses("10.0.0.8"); }); // another interface
    CHECK(probes == 2);
  });
}

TEST_CASE("the first host has the address that most others used, though the next one took another way") {
  const auto answer = [](const json& request) -> json {
    if (request.at("t") == "address")
      return {{"t", "done"}, {"links", json::array({json::object({{"address", request.at("interface")}})})}};
    if (request.at("t") == "listen")
      return {{"t", "done"}, {"ports", std::vector<int>(request.at("addresses").size(), 1)}};
    if (request.at("t") == "probe")
      return {{"t", "done"}, {"failed", std::vector<std::string>(request.at("targets").size())}};
    return {{"t", "done"}};
  };
  const std::vector<host> hosts{{"n0", {joined(0)}, answer},
                                {"n1", {joined(1)}, answer, "10.9.0.0"},
                                {"n2", {joined(2)}, answer},
                                {"n3", {joined(3)}, answer}};
  with_launch(hosts, false, [&](launched_hosts& launched) {
    CHECK(launched.addresses("auto") ==
          std::vector<std::vector<std::string>>{{"10.0.0.0"}, {"10.0.0.1"}, {"10.0.0.2"}, {"10.0.0.3"}});
  });
}

TEST_CASE("processes of one host that run another program than its agent are refused, or warned of, by name") {
  const std::vector<host> hosts{{"n0", {joined(0), joined(1)}},
                                {"n1", {joined(2), joined(3, "34cd"), joined(4), joined(5, "34cd")}}};
  const std::string table = "the processes run different programs:\n"
                            "                  n0   n1 (processes 2, 4) n1 (processes 3, 5)\n"
                            "  program SHA-256 12ab 12ab                34cd";
  CHECK(refusal([&] { with_launch(hosts, false, [](launched_hosts&) {}); }).starts_with(table + '\n'));
  with_launch(hosts, true, [&](launched_hosts& launched) {
    CHECK(launched.warnings() == std::vector{table});
    CHECK(launched.programs().size() == 2);
  });
}

TEST_CASE("one process of a single host with another program is refused") {
  const std::vector<host> hosts{{"n0", {joined(0), joined(1, "34cd")}}};
  const std::string text = refusal([&] { with_launch(hosts, false, [](launched_hosts&) {}); });
  CHECK(text.find("n0 (process 0) n0 (process 1)\n") != std::string::npos);
}

TEST_CASE("processes that run one program on all hosts need no warning") {
  with_launch({{"n0", {joined(0), joined(1)}}, {"n1", {joined(2)}}}, false,
              [](launched_hosts& launched) { CHECK(launched.warnings().empty()); });
}
