// SPDX-License-Identifier: Apache-2.0
#include "launch/launcher_ranks.hpp"

#include "base/console.hpp"
#include "base/cpu_mask.hpp"
#include "base/failure.hpp"
#include "base/json.hpp"
#include "join/environment.hpp"
#include "launch/interruption.hpp"
#include "launch/memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr auto connect_limit = 30s;              // for all processes that the launcher started to find each other
constexpr std::size_t longest_packet = 64 << 10; // bytes

// The address of an abstract Unix socket, which leaves no file behind.
struct socket_name {
  explicit socket_name(const launcher_process& self) {
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("regatta-{}-{}", ::getuid(), self.job);
    const std::size_t count = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), count);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

unique_fd make_socket() {
  unique_fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) throw failure(exit_code::run, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  return fd;
}

// Returns the process at the other end if it belongs to this user, else -1.
pid_t peer_of(int socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  const bool ours = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == ::getuid();
  return ours ? who.pid : -1;
}

// Sends a packet, with a duplicate of the descriptor unless that is -1. Throws failure (run) if the process is gone.
void put(int socket, const json& what, int descriptor = -1) {
  auto packet = json::to_cbor(what);
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> room{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  if (descriptor >= 0) {
    m.msg_control = room.data();
    m.msg_controllen = room.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&m);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  if (::sendmsg(socket, &m, MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size()))
    throw failure(exit_code::run,
                  fmt::format("lost the connection to a process that the launcher started: {}", std::strerror(errno)));
}

// Receives a packet; nullopt if the other end is gone or the packet is no object. Stores a descriptor that came with it
// in `descriptor`.
std::optional<json> get(int socket, unique_fd* descriptor = nullptr) {
  std::vector<std::uint8_t> packet(longest_packet);
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = descriptor ? room.data() : nullptr;
  m.msg_controllen = descriptor ? room.size() : 0;
  ssize_t n = 0;
  while ((n = ::recvmsg(socket, &m, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) break;
    pollfd waiting{socket, POLLIN, 0}; // a coordinator that watches the socket has made it non-blocking
    ::poll(&waiting, 1, -1);
  }
  if (const cmsghdr* const c = n > 0 ? CMSG_FIRSTHDR(&m) : nullptr; c && c->cmsg_type == SCM_RIGHTS) {
    int got = -1;
    std::memcpy(&got, CMSG_DATA(c), sizeof got);
    *descriptor = unique_fd(got);
  }
  if (n <= 0) return {};
  packet.resize(static_cast<std::size_t>(n));
  try {
    json what = parse_cbor(packet);
    return what.is_object() ? std::optional(std::move(what)) : std::nullopt;
  } catch (const failure&) {
    return {};
  }
}

bool wait_readable(int fd, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

unique_fd listen_for_ranks(const launcher_process& self) {
  unique_fd fd = make_socket();
  const socket_name name(self);
  if (::bind(fd.get(), name.get(), name.bytes) != 0 || ::listen(fd.get(), static_cast<int>(self.size)) != 0)
    throw failure(exit_code::run, fmt::format("cannot listen for the processes that {} started: {}", self.launcher,
                                              std::strerror(errno)));
  return fd;
}

unique_fd connect_to_coordinator(const launcher_process& self) {
  const socket_name name(self);
  const auto until = std::chrono::steady_clock::now() + connect_limit;
  for (;;) {
    unique_fd fd = make_socket();
    if (::connect(fd.get(), name.get(), name.bytes) == 0 && peer_of(fd.get()) > 0) {
      put(fd.get(), {{"rank", self.rank}});
      return fd;
    }
    if (std::chrono::steady_clock::now() > until)
      throw failure(exit_code::run,
                    fmt::format("rank 0 of {} is not on this host: all ranks must be on one", self.launcher));
    std::this_thread::sleep_for(10ms); // rank 0 does not listen yet
  }
}

// Binds this process to `cpus` (empty: to all that the control group allows). Throws failure if the kernel refuses.
void run_on(const std::vector<int>& cpus) {
  std::vector<int> all;
  if (cpus.empty()) {
    all.resize(1 << 16); // more than a kernel supports; it ignores CPUs that do not exist
    std::iota(all.begin(), all.end(), 0);
  }
  const cpu_mask mask(cpus.empty() ? all : cpus);
  if (::sched_setaffinity(0, mask.bytes(), mask.set()) != 0)
    throw failure(exit_code::run,
                  fmt::format("cannot run on the CPUs [{}]: {}", fmt::join(cpus, ", "), std::strerror(errno)));
}

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

// Handles the campaign's requests until the campaign ends.
void serve(int campaign, const launcher_request_handlers& handlers) {
  for (;;) {
    unique_fd status;
    const auto asked = get(campaign, &status);
    if (!asked) return;
    const std::string type = asked->at("t");
    int code = 0;
    if (type == "end") return;
    if (type == "join") {
      code = handlers.join(asked->at("file"), asked->at("transport"));
    } else {
      code = run_one(*asked, std::move(status), handlers);
    }
    put(campaign, {{"code", code}});
  }
}

} // namespace

std::optional<launcher_process> find_launcher_process() {
  const auto found = find_launcher(process_environment());
  if (!found) return {};
  if (found->size == 0)
    throw failure(exit_code::usage,
                  fmt::format("{}: expected OMPI_COMM_WORLD_SIZE or SLURM_STEP_NUM_TASKS, the number of processes",
                              found->launcher));
  return launcher_process{found->launcher, found->job, found->rank, found->size};
}

failure launcher_missing(const std::string& transport, const std::string& command, std::uint32_t ranks,
                         const std::string& verb) {
  return {exit_code::usage, fmt::format("transport {} needs processes that a launcher starts: run {} {} regatta {}",
                                        transport, command, ranks, verb)};
}

launcher_ranks::launcher_ranks(unique_fd listener, const launcher_process& self)
    : launcher_(self.launcher), members_(self.size) {
  const auto until = std::chrono::steady_clock::now() + connect_limit;
  for (std::uint32_t there = 0; there < self.size;) {
    if (!wait_readable(listener.get(), until))
      throw failure(exit_code::run,
                    fmt::format("expected the {1} processes that {0} started to connect, got {2} after {3} s: all must "
                                "run on this host",
                                launcher_, self.size, there, connect_limit / 1s));
    unique_fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const pid_t pid = socket.get() < 0 ? -1 : peer_of(socket.get());
    if (pid < 0 || !wait_readable(socket.get(), until)) continue;
    const auto hello = get(socket.get());
    const auto rank = hello ? hello->value("rank", self.size) : self.size;
    if (rank >= self.size || members_[rank].pid >= 0) continue;
    members_[rank].socket = std::move(socket);
    members_[rank].pid = pid;
    ++there;
  }
}

launcher_ranks::~launcher_ranks() {
  for (std::uint32_t r = 0; r < size(); ++r) {
    try {
      put(members_[r].socket.get(), {{"t", "end"}});
    } catch (const failure&) { // the process is gone already
    }
  }
}

void launcher_ranks::join(const std::string& file, const std::string& transport) {
  if (std::find(joined_.begin(), joined_.end(), std::pair(file, transport)) != joined_.end()) return;
  std::vector<std::uint32_t> told;
  std::optional<failure> gone;
  for (std::uint32_t r = 0; r < size(); ++r) {
    try {
      put(members_[r].socket.get(), {{"t", "join"}, {"file", file}, {"transport", transport}});
      told.push_back(r);
    } catch (const failure& e) { // tell the others all the same: a rank that joins can wait for all that still live
      gone = e;
    }
  }
  std::optional<std::uint32_t> missing; // read all answers, so that none is taken for the answer to a later request
  for (const std::uint32_t r : told)
    if (outcome(r).value_or(1) != 0 && !missing) missing = r;
  if (gone) throw *gone;
  if (missing)
    throw failure(exit_code::run, fmt::format("transport {}: process {} failed to join the others: see its standard "
                                              "error",
                                              transport, *missing));
  joined_.emplace_back(file, transport);
}

void launcher_ranks::start_run(std::uint32_t rank, const std::string& host, std::uint16_t port, const blob& secret,
                               const std::vector<int>& cpus, int status) {
  put(members_[rank].socket.get(),
      {{"t", "run"}, {"host", host}, {"port", port}, {"rank", rank}, {"secret", json::binary(secret)}, {"cpus", cpus}},
      status);
}

unique_fd launcher_ranks::watch(std::uint32_t rank) const {
  return unique_fd(::fcntl(members_[rank].socket.get(), F_DUPFD_CLOEXEC, 0));
}

std::optional<int> launcher_ranks::outcome(std::uint32_t rank) {
  const auto answer = get(members_[rank].socket.get());
  return answer ? std::optional(answer->value("code", 1)) : std::nullopt;
}

std::unique_ptr<launcher_ranks> start_under_launcher(const launcher_request_handlers& handlers) {
  const auto self = find_launcher_process();
  if (!self) return nullptr;
  pid_t campaign = -1;
  if (self->rank == 0) {
    unique_fd listener = listen_for_ranks(*self);
    const pid_t parent = ::getpid();
    campaign = ::fork();
    if (campaign < 0) throw failure(exit_code::run, fmt::format("cannot fork: {}", std::strerror(errno)));
    if (campaign == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) std::_Exit(static_cast<int>(exit_code::run));
      run_on({}); // the launcher may have bound rank 0 to CPUs; the campaign assigns them anew
      return std::make_unique<launcher_ranks>(std::move(listener), *self);
    }
  }
  take_oom_score(raised_oom_score().c_str()); // the kernel kills a rank before the campaign's process
  forget_interruptions();                     // the launcher ends the processes that it started
  serve(connect_to_coordinator(*self).get(), handlers);
  int status = 0;
  while (campaign > 0 && ::waitpid(campaign, &status, 0) < 0 && errno == EINTR) {
  }
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status)
                              : static_cast<int>(exit_code::run)); // runs exit handlers of plugins
}

} // namespace regatta
