// SPDX-License-Identifier: Apache-2.0
#include "check/harness/rank_group.hpp"

#include "base/text.hpp"
#include "check/harness/hang_watch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <thread>

#include <fcntl.h>
#include <regatta/clock.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::conformance {

constexpr std::uint32_t most_ranks = 8;
constexpr const char* gave_up = "gave up because another rank failed";

class rank_group_state {
public:
  explicit rank_group_state(std::uint32_t ranks) : ranks_(ranks) {}

  // Throws timed_out after `longest` nanoseconds, counted from the last call of the plugin that returned in any rank:
  // other ranks may be in the middle of large messages. Calls `meanwhile`, if it is not empty, about a thousand times a
  // second; its calls of the plugin would count too, so `longest` then counts from the begin.
  void barrier(std::uint64_t longest = operation_timeout + peer_failure_timeout,
               const std::function<void()>& meanwhile = {}) {
    const std::uint32_t round = round_;
    if (++present_ == ranks_) {
      present_ = 0;
      ++round_;
    }
    std::uint64_t seen = progress_count(), since = rg::now_ns();
    while (round_ == round && !failed_) {
      if (rg::now_ns() - since >= longest) throw timed_out("the other ranks did not reach the test's barrier in time");
      if (meanwhile) {
        meanwhile();
      } else if (const std::uint64_t now = progress_count(); now != seen) {
        seen = now;
        since = rg::now_ns();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    require(round_ != round, gave_up);
  }

  void failed(std::uint32_t rank, const char* why, bool late) {
    std::strncpy(ranks_state_[rank].error, why, sizeof ranks_state_[rank].error - 1);
    ranks_state_[rank].timed_out = late;
    failed_ = true;
  }
  std::string error_of(std::uint32_t rank) const { return ranks_state_[rank].error; }
  bool timed_out_at(std::uint32_t rank) const { return ranks_state_[rank].timed_out; }

  // The exchanges of a rank so far, kept by its run_rank().
  struct exchanges {
    std::map<std::vector<std::uint32_t>, std::uint64_t> calls; // by members
    std::vector<std::uint32_t> last;                           // members of the last call
  };
  // All-gather of rank `me` among `members`, as rg_exchange. A part stays in its rank's state until all members have
  // read it.
  std::vector<endpoint::message> all_gather(std::uint32_t me, exchanges& mine, std::span<const std::uint32_t> members,
                                            const endpoint::message& part) {
    rank_state& own = ranks_state_[me];
    require(std::ranges::binary_search(members, me) && members.back() < ranks_ &&
                std::ranges::adjacent_find(members, std::greater_equal()) == members.end(),
            "regatta.exchange/1: the members are not ranks of the run in ascending order, with this one among them");
    require(part.size() <= sizeof own.part, "regatta.exchange/1: a part has more than 4096 bytes");
    for (const std::uint32_t r : mine.last)
      wait_until([&] { return r == me || ranks_state_[r].has_read[me] == own.parts; });
    mine.last.assign(members.begin(), members.end());
    std::uint64_t key = ++mine.calls[mine.last];
    for (const std::uint32_t r : members) key = (key ^ (r + 1)) * 0x100'0000'01b3; // FNV-1a
    std::copy(part.begin(), part.end(), own.part);
    own.part_bytes = part.size();
    ++own.parts;
    own.key = key;
    std::vector<endpoint::message> all;
    for (const std::uint32_t r : members) {
      rank_state& other = ranks_state_[r];
      wait_until([&] { return other.key == key; });
      all.emplace_back(other.part, other.part + other.part_bytes);
      own.has_read[r] = other.parts.load();
    }
    return all;
  }

  void set_blob(std::uint32_t rank, const std::vector<std::uint8_t>& blob) {
    require(blob.size() <= sizeof ranks_state_[rank].blob,
            "listen() returns a blob of " + std::to_string(blob.size()) + " bytes; the suite supports at most 4096");
    std::copy(blob.begin(), blob.end(), ranks_state_[rank].blob);
    ranks_state_[rank].blob_bytes = blob.size();
  }
  std::vector<std::vector<std::uint8_t>> blobs() const {
    std::vector<std::vector<std::uint8_t>> all;
    for (std::uint32_t r = 0; r < ranks_; ++r)
      all.emplace_back(ranks_state_[r].blob, ranks_state_[r].blob + ranks_state_[r].blob_bytes);
    return all;
  }

private:
  void wait_until(const std::function<bool()>& condition) const {
    const std::uint64_t since = rg::now_ns();
    while (!condition()) {
      require(!failed_, gave_up);
      if (rg::now_ns() - since >= operation_timeout)
        throw timed_out("the other members did not call regatta.exchange/1 in time");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  struct rank_state {
    std::size_t blob_bytes = 0;
    std::uint8_t blob[4096];
    char error[1024] = "";
    bool timed_out = false;
    // The part of all_gather(), its key, which members have in common, and how many parts this rank has sent.
    std::size_t part_bytes = 0;
    std::uint8_t part[4096];
    std::atomic<std::uint64_t> key = 0, parts = 0;
    std::array<std::atomic<std::uint64_t>, most_ranks> has_read{}; // by rank: its value of `parts` when this one read
  };
  const std::uint32_t ranks_;
  // Atomics in place of a mutex: a rank that is killed leaves nothing locked.
  std::atomic<std::uint32_t> round_ = 0, present_ = 0;
  std::atomic<bool> failed_ = false;
  std::array<rank_state, most_ranks> ranks_state_;
};

void member::barrier() {
  state_.barrier();
}

void member::barrier_polling() {
  state_.barrier(operation_timeout + peer_failure_timeout, [this] { endpoint_.poll(0); });
}

namespace {

// Memory that the processes of a launcher share.
struct launcher_memory {
  std::atomic<bool> open; // process 0 has constructed `all`
  alignas(rank_group_state) std::byte all[sizeof(rank_group_state)];
  alignas(rank_group_state) std::byte group[sizeof(rank_group_state)]; // of the test that runs
};
struct launcher_process {
  launcher_memory& shared;
  std::uint32_t rank, size;
  rank_group_state& group() const { return *reinterpret_cast<rank_group_state*>(shared.group); }
  void barrier() const { // the others may still run a test
    reinterpret_cast<rank_group_state*>(shared.all)->barrier(16 * operation_timeout);
  }
};
// Returns this process as one of the launcher; nullopt before join_launcher_ranks().
std::optional<launcher_process>& this_process() {
  static std::optional<launcher_process> process;
  return process;
}

// State in memory that children share if they are forked afterwards.
using shared_state = std::unique_ptr<rank_group_state, void (*)(rank_group_state*)>;
shared_state make_shared_state(std::uint32_t ranks) {
  void* p = mmap(nullptr, sizeof(rank_group_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap() gives no shared memory for the test");
  return {new (p) rank_group_state(ranks), [](rank_group_state* state) { munmap(state, sizeof *state); }};
}

void run_rank(const subject& which, const rank_group_shape& shape, std::uint32_t rank, rank_group_state& state,
              const std::function<void(member&)>& body) {
  try {
    rank_group_state::exchanges done;
    endpoint e(which, rank, shape.ranks, shape.lanes, {},
               [&](std::span<const std::uint32_t> members, const endpoint::message& part) {
                 return state.all_gather(rank, done, members, part);
               });
    state.set_blob(rank, e.listen());
    state.barrier();
    e.connect(state.blobs());
    member self(e, state);
    body(self);
    if (shape.close) e.close();
  } catch (const timed_out& e) {
    state.failed(rank, e.what(), true);
  } catch (const std::exception& e) {
    state.failed(rank, e.what(), false);
  }
}

// Runs the body as this process's rank. All processes of the launcher call it.
void run_launcher_rank(const launcher_process& here, const subject& which, const rank_group_shape& shape,
                       const std::function<void(member&)>& body) {
  if (shape.ranks > here.size)
    throw skipped("it needs " + std::to_string(shape.ranks) + " processes, and the launcher started " +
                  std::to_string(here.size));
  here.barrier(); // only then has every process left the previous group
  if (here.rank == 0) new (here.shared.group) rank_group_state(shape.ranks);
  here.barrier();
  if (here.rank < shape.ranks) run_rank(which, shape, here.rank, here.group(), body);
  here.barrier();
}

struct child {
  pid_t pid = -1;
  std::string ended; // how it ended, if not with exit code 0
};

// Waits until all children have ended. Kills them if they hang: no call of the plugin returns in any of them
// (hang_watch). Returns true if it killed them.
bool reap(std::vector<child>& children) {
  constexpr std::chrono::seconds limit(rank_call_limit / second);
  const bool watched = progress_count() > 0; // without reports of progress, as with --in-process, there is no limit
  std::uint64_t seen = 0;
  hang_watch watch(getpgrp(), limit);
  bool hung = false;
  std::size_t left = children.size();
  while (left) {
    for (child& c : children) {
      int status = 0;
      if (c.pid < 0 || waitpid(c.pid, &status, watched && !hung ? WNOHANG : 0) != c.pid) continue;
      c.pid = -1;
      --left;
      if (WIFSIGNALED(status)) c.ended = "signal " + std::to_string(WTERMSIG(status));
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) c.ended = "exit " + std::to_string(WEXITSTATUS(status));
      if (hung && WIFSIGNALED(status))
        c.ended = "no call of the plugin returned for " + std::to_string(limit.count()) + " s";
    }
    if (!left || hung) continue;
    if (const std::uint64_t now = progress_count(); now != seen) {
      seen = now;
      watch.progress();
    }
    hung = watched && watch.hangs();
    for (const child& c : children)
      if (hung && c.pid >= 0) kill(c.pid, SIGKILL);
    if (!hung) std::this_thread::sleep_for(std::chrono::milliseconds(5)); // waitpid() has no timeout
  }
  return hung;
}

// Writes how each child ended to `children`, one for each rank. Returns true if they hung and were killed.
bool run_children(const subject& which, const rank_group_shape& shape, rank_group_state& state,
                  const std::function<void(member&)>& body, std::vector<child>& children) {
  std::fflush(nullptr); // else the children would print buffered text again
  std::cout.flush();
  const pid_t parent = getpid();
  for (std::uint32_t r = 0; r < shape.ranks; ++r) {
    children[r].pid = fork();
    require(children[r].pid >= 0, "fork() fails: the machine allows no more processes");
    if (children[r].pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); // ranks must not outlive the test, however it ends
      if (getppid() != parent) _exit(1);
      run_rank(which, shape, r, state, body);
      _exit(0);
    }
  }
  return reap(children);
}

// Returns the errors for errors_of_ranks(), or throws timed_out with them.
std::vector<std::string> errors_in(const rank_group_state& state, const std::vector<child>& children, bool hung) {
  std::vector<std::string> errors;
  std::set<std::string> causes;
  bool late = hung;
  for (std::uint32_t r = 0; r < children.size(); ++r) {
    for (const std::string& text : {children[r].ended, state.error_of(r)}) {
      if (text.empty()) continue;
      errors.push_back("rank " + std::to_string(r) + ": " + text);
      if (text != gave_up) causes.insert(text);
    }
    late = late || state.timed_out_at(r);
  }
  if (!causes.empty()) std::erase_if(errors, [](const std::string& line) { return line.ends_with(gave_up); });
  if (causes.size() == 1 && errors.size() == children.size()) errors = {"every rank: " + *causes.begin()};
  if (late) throw timed_out(join(errors, "; "));
  return errors;
}

} // namespace

void join_launcher_ranks(const std::filesystem::path& shared_file, std::uint32_t rank, std::uint32_t size) {
  const int fd = open(shared_file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat about {};
  const bool ours = fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == geteuid();
  void* p = ours && ftruncate(fd, sizeof(launcher_memory)) == 0
                ? mmap(nullptr, sizeof(launcher_memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                : MAP_FAILED;
  if (fd >= 0) close(fd);
  require(p != MAP_FAILED, shared_file.string() + ": cannot be mapped; it must be a writable file of this user");
  launcher_memory& shared = *static_cast<launcher_memory*>(p);
  if (rank == 0) {
    new (shared.all) rank_group_state(size);
    shared.open = true;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(4 * operation_timeout);
  while (!shared.open) { // process 0 is not ready yet
    require(std::chrono::steady_clock::now() < until, "process 0 of the launcher did not start the suite in time");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  this_process().emplace(launcher_process{shared, rank, size});
  this_process()->barrier();
  if (rank == 0) std::filesystem::remove(shared_file);
}

std::vector<std::string> errors_of_ranks(const subject& which, const rank_group_shape& shape,
                                         const std::function<void(member&)>& body) {
  require(shape.ranks <= most_ranks, "the test itself is wrong: it needs more than 8 ranks");
  if (caps_of(which).flags & RG_CAP_NONE) throw skipped("it connects no ranks (RG_CAP_NONE)");
  if (const auto& here = this_process()) {
    run_launcher_rank(*here, which, shape, body);
    return errors_in(here->group(), std::vector<child>(shape.ranks), false);
  }
  const shared_state state = make_shared_state(shape.ranks);
  std::vector<child> children(shape.ranks);
  bool hung = false;
  if (shape.kind == ranks_as::threads) {
    std::vector<std::jthread> threads; // the end of this block joins them
    for (std::uint32_t r = 0; r < shape.ranks; ++r)
      threads.emplace_back([&, r] { run_rank(which, shape, r, *state, body); });
  } else {
    hung = run_children(which, shape, *state, body, children);
  }
  return errors_in(*state, children, hung);
}

void run_ranks(const subject& which, const rank_group_shape& shape, const std::function<void(member&)>& body) {
  const auto errors = errors_of_ranks(which, shape, body);
  if (!errors.empty()) throw failed(join(errors, "; "));
}

} // namespace regatta::conformance
