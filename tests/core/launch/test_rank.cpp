// SPDX-License-Identifier: Apache-2.0
//
// A rank that does what its job says, step by step, for launch_test; and, as `test_rank coordinate N`, a coordinator of
// N ranks that go on for ever, to be killed.
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/cpu_mask.hpp"
#include "base/failure.hpp"
#include "control/asio.hpp"
#include "control/client.hpp"
#include "control/rank_arguments.hpp"
#include "launch/cpus.hpp"
#include "launch/launch.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

[[noreturn]] void hang() {
  for (;;) ::pause();
}

blob pattern(std::size_t rank, std::size_t bytes) {
  blob out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>((i * 31 + rank * 7) >> 3);
  return out;
}

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(fmt::format("wrong: {}", what));
}

// Connections that never prove anything: silent, garbage, giant lengths, half a handshake; more than are let wait.
std::vector<tcp::socket> strangers(asio::io_context& io, const rank_arguments& to) {
  std::vector<tcp::socket> out;
  for (int i = 0; i < 80; ++i) {
    tcp::socket s(io);
    s.connect({asio::ip::make_address(to.host), to.port});
    boost::system::error_code ignored;
    const blob text = i % 4 == 1 ? pattern(0, 1 << 16) : i % 4 == 2 ? blob(68, 0xff) : blob(i % 4 == 3 ? 10 : 0, 0);
    s.write_some(asio::buffer(text), ignored);
    out.push_back(std::move(s));
  }
  return out;
}

// Returns the open descriptors except the standard three and those that this program opened.
std::vector<std::string> inherited() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto what = std::filesystem::read_symlink(entry.path(), gone).string();
    if (std::stoi(entry.path().filename()) > 2 && what.find("/proc/") != 0) out.push_back(what);
  }
  return out;
}

struct rank_program {
  rank_arguments invited;
  std::vector<std::string> open_at_start;
  std::optional<control_client> client;
  std::optional<status_page> page;
  std::promise<std::uint32_t> death;

  void run();
  void step(const json& s);
};

void rank_program::run() {
  client.emplace(invited.host, invited.port, invited.rank, invited.secret, std::move(*page));
  client->on_death([this](std::uint32_t rank) { death.set_value(rank); });
  try {
    for (const auto& s : client->job().at("steps")) step(s);
  } catch (const failure& e) {
    client->failed(e.what(), static_cast<int>(e.code()));
    throw;
  } catch (const std::exception& e) {
    client->failed(e.what(), 1);
    throw;
  }
}

void rank_program::step(const json& s) {
  const std::string what = s.at("do");
  if (what == "barrier") {
    client->barrier(s.at("name").get<std::string>());
  } else if (what == "exchange") {
    const std::size_t bytes = s.at("bytes");
    const auto all = client->exchange("pattern", pattern(invited.rank, bytes + invited.rank));
    check(all.size() == client->ranks(), "number of blobs");
    for (std::size_t r = 0; r < all.size(); ++r) check(all[r] == pattern(r, bytes + r), "a blob");
  } else if (what == "sum") {
    const auto sum = client->sum("numbers", {1.0, 0.5 * invited.rank});
    const double n = client->ranks();
    check(sum == std::vector<double>{n, 0.25 * n * (n - 1)}, "sum");
    check(client->sum("nothing", {}).empty(), "empty sum");
  } else if (what == "operation") {
    client->operation(s.at("text").get<std::string>().c_str());
  } else if (what == "progress") {
    client->progress(s.at("step"), s.at("samples"));
  } else if (what == "log") {
    client->log(2, s.at("text"));
  } else if (what == "long texts") {
    client->log(2, std::string(s.at("bytes"), 'l'));
    throw std::runtime_error(std::string(s.at("bytes"), 't'));
  } else if (what == "exchange within a sum") {
    client->begin_sum(s.at("tag").get<std::string>(), {1.0});
    client->exchange("within", {});
  } else if (what == "stderr") {
    const std::string text = s.at("text");
    (void)!::write(2, text.data(), text.size());
  } else if (what == "result") {
    client->result(s.at("value"));
  } else if (what == "exit") {
    ::_exit(s.at("code"));
  } else if (what == "throw") {
    throw std::runtime_error(s.at("text").get<std::string>());
  } else if (what == "signal") {
    ::raise(s.at("number"));
  } else if (what == "abort") {
    std::abort();
  } else if (what == "hang") {
    client->log(2, "hanging");
    hang();
  } else if (what == "close") {
    client.reset();
    hang();
  } else if (what == "loop") {
    for (;;) step({{"do", "exchange"}, {"bytes", 10000}});
  } else if (what == "hurt rank 1 and blame it") {
    // Reports the consequence before the coordinator can see the cause.
    const pid_t own = ::getpid();
    blob mine(sizeof own);
    std::memcpy(mine.data(), &own, sizeof own);
    const auto all = client->exchange("pids", mine);
    if (invited.rank != 0) hang();
    client->failed("lost the connection to rank 1", 1, blame::peer);
    pid_t victim = 0;
    std::memcpy(&victim, all.at(1).data(), sizeof victim);
    ::kill(victim, s.at("number"));
    ::_exit(1);
  } else if (what == "mac") {
    std::array<std::uint8_t, 32> m{};
    client->mac("challenge", 9, m.data());
    const auto all = client->exchange("mac", blob(m.begin(), m.end()));
    for (const auto& other : all) check(other == all[0] && other.size() == 32, "mac");
    check(std::memcmp(m.data(), blob(32, 0).data(), 32) != 0, "mac is not zero");
  } else if (what == "wait for death") {
    client->log(2, fmt::format("saw the end of {}", static_cast<std::int32_t>(death.get_future().get())));
    check(client->aborted(), "aborted");
  } else if (what == "look around") {
    client->result({{"cpus", available_cpus()},
                    {"inherited", open_at_start},
                    {"stdin", std::filesystem::read_symlink("/proc/self/fd/0").string()},
                    {"leads its group", ::getpgrp() == ::getpid()}});
  } else if (what == "grandchild") {
    if (::fork() == 0) hang();
  } else {
    throw std::runtime_error("no such step: " + what);
  }
}

int coordinate(std::uint32_t ranks) {
  launch_plan plan;
  for (std::uint32_t r = 0; r < ranks; ++r)
    plan.ranks.push_back(
        {fmt::format("worker {}", r), {}, std::make_shared<const json>(json{{"steps", {{{"do", "loop"}}}}})});
  launch(plan, {});
  return 1; // it goes on for ever
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "coordinate") == 0) return coordinate(std::stoul(argv[2]));
  if (argc != 10 || std::strcmp(argv[1], "rank") != 0) return 2;
  const char* mode = std::getenv("TEST_RANK_MODE");
  if (mode != nullptr && std::strcmp(mode, "never connect") == 0) hang();
  rank_program program;
  program.open_at_start = inherited();
  asio::io_context io;
  std::vector<tcp::socket> bothering;
  try {
    program.invited = read_rank_arguments(argv[3], std::stoul(argv[5]), std::stoi(argv[7]));
    program.page.emplace(std::stoi(argv[9]));
    if (mode != nullptr && std::strcmp(mode, "strangers") == 0) bothering = strangers(io, program.invited);
    program.run();
  } catch (const std::exception&) {
    return 1; // reported
  }
  return 0;
}
