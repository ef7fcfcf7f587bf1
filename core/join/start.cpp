// SPDX-License-Identifier: Apache-2.0
#include "join/start.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "control/crypto.hpp"
#include "control/handshake.hpp"
#include "control/rank_arguments.hpp"
#include "join/agent.hpp"
#include "join/binding.hpp"
#include "join/codes.hpp"
#include "join/ending.hpp"
#include "join/frames.hpp"
#include "join/identity.hpp"
#include "join/packets.hpp"
#include "join/pmix.hpp"
#include "join/secret.hpp"
#include "join/sockets.hpp"
#include "join/variables.hpp"
#include "launch/interruption.hpp"
#include "launch/memory.hpp"
#include "network/interfaces.hpp"

namespace regatta {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using clock = std::chrono::steady_clock;

constexpr auto meet_limit = 60s;      // for a name to be known, and process 0 to listen
constexpr auto same_host_limit = 10s; // for process 0 on this host
constexpr auto attempt_limit = 3s;    // for one attempt to connect
constexpr auto attempt_pause = 100ms;
constexpr auto refusal_limit = 4s; // from the first time to the last that process 0 refuses this host's secret
constexpr auto refusal_pause = 500ms;
constexpr auto listen_limit = 2s; // for the first process of this host, between its bind() and its listen()

std::string campaign_name(const launcher_environment& self) {
  return self.job + " campaign";
}

struct child {
  pid_t pid = -1;    // 0 in the child itself; -1: none
  unique_fd channel; // a connection between parent and child: packets
};

// Forks. The child ends by the signal `at_end` when this process ends. Throws failure (run) if that is impossible.
child fork_child(int at_end) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw failure(exit_code::run, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  unique_fd mine(ends[0]), childs(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw failure(exit_code::run, fmt::format("cannot fork: {}", std::strerror(errno)));
  if (pid > 0) return {pid, std::move(mine)};
  ::prctl(PR_SET_PDEATHSIG, at_end);
  if (::getppid() != parent) std::_Exit(static_cast<int>(exit_code::run));
  return {0, std::move(childs)};
}

// Where the agent finds the campaign: names or addresses to try in turn, all with this secret.
struct whereabouts {
  std::vector<std::string> hosts;
  std::uint16_t port = 0, tries = 1;
  blob secret;
};

// Throws failure (usage): process 0 has another secret.
[[noreturn]] void refuse_secret(const launcher_environment& self, const std::string& host, std::uint16_t port) {
  throw failure(exit_code::usage,
                fmt::format("{}: process 0 at {} port {} has another secret than this host{}", self.launcher, host,
                            port,
                            self.secret_file.empty()
                                ? ""
                                : fmt::format(": REGATTA_SECRET_FILE={} must be the same file on all hosts, and each "
                                              "launch needs a port of its own",
                                              one_line(self.secret_file))));
}

// Connects the agent of this host to the campaign. A campaign on this host is found without a network and without a
// secret. Throws failure: (run) if there is no connection in time, (usage) if process 0 has another secret.
unique_fd connect_agent(const launcher_environment& self, const std::optional<whereabouts>& where, blob& secret,
                        std::uint32_t first) {
  const auto limit = where ? std::chrono::seconds(meet_limit) : std::chrono::seconds(same_host_limit);
  const auto until = clock::now() + limit;
  std::string why = "no answer", target;
  std::optional<clock::time_point> refused; // the first time
  for (std::uint32_t attempt = 0; clock::now() < until; ++attempt) {
    if (const unique_fd local = connect_at(campaign_name(self)); local.get() >= 0)
      if (const auto told = get(local.get())) {
        secret = told->at("secret").get_binary();
        if (unique_fd fd = connect_to("127.0.0.1", told->at("port"), secret, first, attempt_limit, why); fd.get() >= 0)
          return fd;
      }
    if (where) {
      secret = where->secret;
      for (const std::string& host : where->hosts) {
        target = host;
        const auto port = static_cast<std::uint16_t>(where->port + attempt % where->tries);
        try {
          if (unique_fd fd = connect_to(host, port, secret, first, attempt_limit, why); fd.get() >= 0) return fd;
        } catch (const proof_refused& e) {
          // Another launch may hold the first of several ports, or be about to leave this one.
          if (!refused) refused = clock::now();
          if (clock::now() > *refused + refusal_limit && attempt >= where->tries) refuse_secret(self, host, port);
          why = e.what();
          std::this_thread::sleep_for(refusal_pause);
        }
      }
    }
    std::this_thread::sleep_for(attempt_pause); // process 0 does not listen yet, or its name is not known yet
  }
  if (!where)
    throw failure(exit_code::usage,
                  fmt::format("{}: process 0 is not on this host, and nothing says how to meet it{}{}", self.launcher,
                              self.advice.empty() ? "" : ": ", self.advice));
  throw failure(exit_code::run,
                fmt::format("{}: cannot reach process 0 at {} port {} within {} s: {}; check the name, and that the "
                            "firewall lets this port through",
                            self.launcher, target, where->port, limit / 1s, why));
}

// Runs the agent in this process, a child, until the launch is over.
[[noreturn]] void serve_as_agent(agent_setup setup) {
  int code = static_cast<int>(exit_code::run);
  try {
    code = run_agent(std::move(setup));
  } catch (const failure& e) {
    print_error(fmt::format("regatta: {}\n", e.what()));
    code = static_cast<int>(e.code());
  } catch (const std::exception& e) {
    print_error(fmt::format("regatta: agent: {}\n", e.what()));
  }
  std::_Exit(code); // no exit handlers: they belong to the process that forked
}

// The agent's process: waits on `told` for the whereabouts, and serves until the launch is over.
[[noreturn]] void be_agent(const launcher_environment& self, unique_fd processes, int told, std::uint32_t first) {
  agent_setup setup;
  try {
    const auto message = get(told);
    if (!message) std::_Exit(static_cast<int>(exit_code::run)); // this host's first process has said why
    std::optional<whereabouts> where;
    if (message->contains("hosts"))
      where = whereabouts{message->at("hosts"), message->at("port"), message->at("tries"),
                          message->at("secret").get_binary()};
    setup.coordinator = connect_agent(self, where, setup.secret, first);
  } catch (const failure& e) {
    print_error(fmt::format("regatta: {}\n", e.what()));
    std::_Exit(static_cast<int>(e.code()));
  }
  setup.processes = std::move(processes);
  serve_as_agent(std::move(setup));
}

// Returns the addresses of this host by which others may reach it, and its name.
std::vector<std::string> addresses_of_this_host() {
  std::vector<std::string> all = global_addresses();
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) all.emplace_back(name.data());
  return all;
}

// Tells the agent where the campaign is.
void tell(int agent, const std::optional<whereabouts>& where) {
  json message = json::object();
  if (where)
    message = {{"hosts", where->hosts},
               {"port", where->port},
               {"tries", where->tries},
               {"secret", json::binary(where->secret)}};
  put(agent, message);
}

// Says where the campaign is. `port` and `secret` are process 0's; empty in the others. std::nullopt: on this host.
std::optional<whereabouts> find_whereabouts(const launcher_environment& self, std::uint16_t port, const blob& secret,
                                            pmix_exchange* pmix) {
  if (self.meets == launcher_environment::meeting::same_host) return {};
  if (self.meets == launcher_environment::meeting::address)
    return whereabouts{{self.host}, self.port, std::max<std::uint16_t>(self.port_tries, 1), secret};
  const json mine{{"hosts", addresses_of_this_host()}, {"port", port}, {"secret", secret}};
  const json told = parse_json(pmix->broadcast(mine.dump()));
  return whereabouts{told.at("hosts"), told.at("port"), 1, told.at("secret").get<blob>()};
}

// Serves the agent of this host as one of the launch's processes, until the launch is over. Returns whether it has
// ended in order; if not, the agent or the coordinator is gone. `program`: describe_this_program().
bool serve_as(std::uint32_t slot, const json& program, const launcher_environment& self,
              const launcher_request_handlers& handlers) {
  take_oom_score(raised_oom_score().c_str()); // the kernel kills a rank before the campaign's process
  const auto until = clock::now() + listen_limit;
  unique_fd agent;
  while ((agent = connect_at(self.job)).get() < 0) {
    if (clock::now() > until) return false;
    std::this_thread::sleep_for(10ms);
  }
  try {
    put(agent.get(), {{"slot", slot}, {"who", program}});
    return serve_agent(agent.get(), handlers);
  } catch (const failure&) { // the agent ended at this moment
    return false;
  }
}

void show_codes(const std::vector<std::string>& codes, std::uint16_t port) {
  const std::vector<std::string> addresses = global_addresses();
  const std::string address = addresses.empty() ? "127.0.0.1" : addresses.front();
  print_error(
      fmt::format("regatta: waiting for {} host{}. On each of them, run\n\n  regatta join {}:{}\n\nand type one "
                  "of these codes, each on one host:\n",
                  codes.size(), codes.size() == 1 ? "" : "s",
                  address.find(':') == std::string::npos ? address : fmt::format("[{}]", address), port));
  for (const std::string& code : codes) print_error(fmt::format("  {}\n", code));
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(exit_code::run);
}

} // namespace

// As start_under_launcher(), with the environment that it found. `codes`: of launch_meeting.
std::unique_ptr<launched_hosts> start_in(std::optional<launcher_environment> self,
                                         const launcher_request_handlers& handlers, bool allow_different,
                                         const std::vector<std::string>& codes) {
  if (self->slots == 0)
    throw failure(exit_code::usage,
                  fmt::format("{}: expected a number of processes for each host, got \"auto\"", self->launcher));
  blob secret;
  if (!self->secret_file.empty()) {
    const digest d = read_secret(self->secret_file);
    secret.assign(d.begin(), d.end());
  }
  run_on({}); // the launcher may have bound this process to CPUs; the campaign assigns them to ranks anew
  // All forks come before PMIx, which has threads; so the children are told through pipes what only PMIx knows.
  std::uint16_t port = self->port;
  child campaign;
  if (self->rank == 0) {
    if (secret.empty()) secret = random_bytes(secret_bytes);
    launch_meeting here{listen_on_all(self->port, self->port_tries, port), listen_at(campaign_name(*self)), secret,
                        codes};
    if (!codes.empty()) show_codes(codes, port);
    if (here.local.get() < 0)
      throw failure(exit_code::run,
                    fmt::format("another process 0 of this launch ({}) runs on this host already", self->job));
    if (self->port && port != self->port)
      print_error(fmt::format("regatta: port {} is taken; the coordinator listens on port {}\n", self->port, port));
    if ((campaign = fork_child(SIGTERM)).pid == 0) {
      const auto told = get(campaign.channel.get());
      if (!told) std::_Exit(static_cast<int>(exit_code::run)); // process 0 has said why
      self->size = told->at("size");
      expect_echoes_of(::getppid());
      return std::make_unique<launched_hosts>(std::move(here), *self, allow_different);
    }
  }
  const std::uint32_t first = self->rank * self->slots;
  child agent;
  if (unique_fd processes = listen_at(self->job); processes.get() >= 0) // this is the first process of its host
    if ((agent = fork_child(SIGKILL)).pid == 0) {
      await_end_at_interruptions();
      campaign.channel.reset();
      be_agent(*self, std::move(processes), agent.channel.get(), first);
    }
  const json program = describe_this_program(); // once, before the forks: it reads the whole program
  std::uint32_t slot = first;
  for (std::uint32_t extra = 1; extra < self->slots; ++extra)
    if (fork_child(SIGKILL).pid == 0) {
      slot = first + extra;
      campaign = {};
      agent = {};
      break;
    }

  await_end_at_interruptions(campaign.pid);

  // mpirun ends the job if a process exits without ending its PMIx connection.
  std::unique_ptr<pmix_exchange> pmix;
  if (self->meets == launcher_environment::meeting::pmix) {
    pmix = std::make_unique<pmix_exchange>();
    self->size = pmix->size();
  }
  if (campaign.pid > 0) put(campaign.channel.get(), {{"size", self->size}});
  const auto where = find_whereabouts(*self, port, secret, pmix.get());
  if (agent.pid > 0) tell(agent.channel.get(), where);

  const bool in_order = serve_as(slot, program, *self, handlers);
  int code = in_order ? 0 : static_cast<int>(exit_code::run);
  if (agent.pid > 0) {
    const int agents = exit_code_of(agent.pid); // the agent has said why
    if (!in_order && agents) code = agents;
  }
  if (end_was_asked()) code = static_cast<int>(exit_code::interrupted);
  if (campaign.pid > 0) code = exit_code_of(campaign.pid);
  pmix.reset();
  std::exit(code); // runs exit handlers of plugins
}

std::unique_ptr<launched_hosts> start_under_launcher(const launcher_request_handlers& handlers, bool allow_different) {
  auto self = find_launcher(process_environment());
  return self ? start_in(std::move(self), handlers, allow_different, {}) : nullptr;
}

std::unique_ptr<launched_hosts> wait_for_hosts(std::uint32_t others, const launcher_request_handlers& handlers,
                                               bool allow_different) {
  launcher_environment self;
  self.launcher = "--wait-for";
  self.job = fmt::format("wait-for {}", ::getpid());
  self.size = others + 1;
  std::vector<std::string> codes;
  for (std::uint32_t i = 0; i < others; ++i) codes.push_back(make_code());
  return start_in(self, handlers, allow_different, codes);
}

int join_launch(const std::string& address, const std::string& code, const launcher_request_handlers& handlers) {
  const auto colon = address.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : port_of(address.substr(colon + 1));
  if (!port)
    throw failure(exit_code::usage,
                  fmt::format("expected HOST:PORT, as the first computer shows it, got \"{}\"", one_line(address)));
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const blob secret = secret_of_code(code);
  std::string why;
  agent_setup setup;
  std::optional<message> welcome;
  try {
    setup.coordinator = connect_to(host, *port, secret, 0, 10s, why);
    if (setup.coordinator.get() >= 0) welcome = receive_frame(setup.coordinator, 10s);
  } catch (const failure& e) {
    why = e.what();
  }
  if (!welcome)
    throw failure(
        exit_code::run,
        fmt::format("{}: cannot join: {}; check the address and the code, which serves one host only", address, why));
  setup.secret = under_code(secret, welcome->header.at("nonce").get<blob>(), welcome->header.at("secret").get<blob>());
  launcher_environment self;
  self.launcher = "regatta join";
  self.rank = welcome->header.at("slot");
  self.size = welcome->header.at("size");
  self.job = fmt::format("{} {}", welcome->header.at("job").get<std::string>(), self.rank);
  print_error(
      fmt::format("regatta: joined as {} of {} hosts; serving until the run is over\n", self.rank + 1, self.size));
  setup.processes = listen_at(self.job);
  if (setup.processes.get() < 0) throw failure(exit_code::run, "this host has joined already with this code");
  run_on({});
  const child agent = fork_child(SIGKILL);
  if (agent.pid == 0) {
    await_end_at_interruptions();
    serve_as_agent(std::move(setup));
  }
  setup = {};
  await_end_at_interruptions();
  const bool in_order = serve_as(self.rank, describe_this_program(), self, handlers);
  exit_code_of(agent.pid);
  return in_order ? 0 : static_cast<int>(exit_code::run);
}

} // namespace regatta
