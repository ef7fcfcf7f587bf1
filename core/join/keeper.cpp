// SPDX-License-Identifier: Apache-2.0
#include "join/keeper.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/console.hpp"
#include "base/failure.hpp"
#include "control/rank_arguments.hpp"
#include "join/binding.hpp"
#include "join/packets.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Resets the peak of resident memory, which each run measures anew.
void forget_memory_peak() {
  const unique_fd fd(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  if (fd.get() >= 0) [[maybe_unused]]
    const auto n = ::write(fd.get(), "5", 1);
}

// Returns the exit code of one run.
int run_one(const json& asked, unique_fd status, const launcher_request_handlers& handlers) {
  try {
    run_on(asked.at("cpus").get<std::vector<int>>());
  } catch (const failure& e) {
    print_error(fmt::format("{}\n", e.what()));
    return static_cast<int>(e.code());
  }
  forget_memory_peak();
  return handlers.run(asked.at("host"), asked.at("port"), asked.at("rank"), asked.at("secret").get_binary(),
                      status.release());
}

// Starts a rank and answers the agent.
process start_rank(int agent, const json& asked, const unique_fd& status) {
  process p;
  const std::uint16_t port = asked.at("port");
  const std::uint32_t rank = asked.at("rank");
  const auto arguments = [&](int secret_fd) {
    return to_command_line(asked.at("host"), port, rank, secret_fd, status.get());
  };
  try {
    p = start_process("/proc/self/exe", arguments, asked.at("secret").get_binary(),
                      asked.at("cpus").get<std::vector<int>>(), status.get());
  } catch (const failure& e) {
    put(agent, {{"error", e.what()}});
    return p;
  }
  put(agent, {{"pid", p.pid}}, std::array{p.handle.get(), p.output.get(), p.errors.get()});
  p.output.reset();
  p.errors.reset();
  return p;
}

} // namespace

bool serve_agent(int agent, const launcher_request_handlers& handlers) {
  process rank;
  for (;;) {
    const std::array<int, 2> both{rank.handle.get(), agent};
    if (wait_readable(both, std::chrono::steady_clock::time_point::max()) == 0) {
      const int status = reap_process(rank);
      rank.handle.reset();
      put(agent, {{"status", status}});
      continue;
    }
    std::vector<unique_fd> descriptors;
    const auto asked = get(agent, &descriptors);
    if (!asked) return false;
    const std::string type = asked->at("t");
    if (type == "end") return true;
    unique_fd status = descriptors.empty() ? unique_fd() : std::move(descriptors.front());
    if (type == "fork")
      rank = start_rank(agent, *asked, status);
    else if (type == "join")
      put(agent, {{"code", handlers.join(asked->at("file"), asked->at("transport"))}});
    else
      put(agent, {{"code", run_one(*asked, std::move(status), handlers)}});
  }
}

keepers::~keepers() {
  for (auto& [slot, m] : members_) {
    try {
      put(m.socket.get(), {{"t", "end"}});
    } catch (const failure&) { // the process is gone already
    }
  }
}

void keepers::add(std::uint32_t slot, unique_fd socket, pid_t pid) {
  member& m = members_[slot];
  m.socket = std::move(socket);
  m.pid = pid;
}

std::vector<std::uint32_t> keepers::gone() const {
  std::vector<std::uint32_t> ended;
  for (const auto& [slot, m] : members_) {
    pollfd p{m.socket.get(), POLLRDHUP, 0};
    if (::poll(&p, 1, 0) > 0) ended.push_back(slot);
  }
  return ended;
}

void keepers::join(const std::string& file, const std::string& transport) {
  std::vector<std::uint32_t> told;
  std::optional<failure> gone;
  for (auto& [slot, m] : members_) {
    try {
      put(m.socket.get(), {{"t", "join"}, {"file", file}, {"transport", transport}});
      told.push_back(slot);
    } catch (const failure& e) { // tell the others all the same: a rank that joins can wait for all that still live
      gone = e;
    }
  }
  std::optional<std::uint32_t> missing; // read all answers, so that none is taken for the answer to a later request
  for (const std::uint32_t slot : told) {
    const auto answer = get(members_.at(slot).socket.get());
    if ((!answer || answer->value("code", 1) != 0) && !missing) missing = slot;
  }
  if (gone) throw *gone;
  if (missing)
    throw failure(exit_code::run, fmt::format("transport {}: process {} failed to join the others: see its standard "
                                              "error",
                                              transport, *missing));
}

void keepers::assign(std::map<std::uint32_t, std::uint32_t> slot_of_rank, bool lasting) {
  slot_of_rank_ = std::move(slot_of_rank);
  lasting_ = lasting;
}

process keepers::start(const order& o) {
  member& m = of_rank(o.rank);
  put(m.socket.get(),
      {{"t", lasting_ ? "run" : "fork"},
       {"host", o.host},
       {"port", o.port},
       {"rank", o.rank},
       {"secret", json::binary(o.secret)},
       {"cpus", o.cpus}},
      std::array{o.status});
  process p;
  if (lasting_) {
    p.pid = m.pid;
    p.handle = unique_fd(::fcntl(m.socket.get(), F_DUPFD_CLOEXEC, 0)); // readable once it answers, or is gone
    return p;
  }
  std::vector<unique_fd> descriptors;
  const auto answer = get(m.socket.get(), &descriptors);
  if (!answer) throw failure(exit_code::run, fmt::format("the launcher's process {} is gone", m.pid));
  if (answer->contains("error") || descriptors.size() != 3)
    throw failure(exit_code::run, answer->value("error", "a rank could not be started"));
  p.pid = answer->at("pid");
  p.handle = std::move(descriptors[0]);
  p.output = std::move(descriptors[1]);
  p.errors = std::move(descriptors[2]);
  m.rank = unique_fd(::fcntl(p.handle.get(), F_DUPFD_CLOEXEC, 0));
  return p;
}

rank_starter::end keepers::reap(std::uint32_t rank) {
  member& m = of_rank(rank);
  m.rank.reset();
  const auto answer = get(m.socket.get());
  if (lasting_) {
    if (!answer) return {"died", false, false};
    const int code = answer->value("code", 1);
    return {fmt::format("ended with code {}", code), code == 0, false};
  }
  if (!answer) return {"ended with the launcher's process that started it", false, false};
  return end_of(answer->value("status", 1));
}

void keepers::kill(std::uint32_t rank) noexcept {
  member& m = of_rank(rank);
  if (lasting_)
    ::kill(m.pid, SIGKILL); // the launcher then ends the other ranks
  else if (m.rank.get() >= 0)
    ::syscall(SYS_pidfd_send_signal, m.rank.get(), SIGKILL, nullptr, 0); // the keeper then kills its process group
}

} // namespace regatta
