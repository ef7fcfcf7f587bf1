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
#include <ctime>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::conformance {

constexpr std::uint32_t most_ranks = 8;
constexpr const char* gave_up = "gave up because another rank failed";

class meeting_place {
public:
  explicit meeting_place(std::uint32_t ranks) : ranks_(ranks) {
    pthread_mutexattr_t m;
    pthread_mutexattr_init(&m);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex_, &m);
    pthread_condattr_t c;
    pthread_condattr_init(&c);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&changed_, &c);
  }

  // Throws timed_out after `longest` nanoseconds, counted from the last call of the plugin that returned in any rank:
  // other ranks may be in the middle of large messages. Calls `meanwhile`, if it is not empty, about a thousand times a
  // second; its calls of the plugin would count too, so `longest` then counts from the begin.
  void meet(std::uint64_t longest = patience + patience_with_peers, const std::function<void()>& meanwhile = {}) {
    pthread_mutex_lock(&mutex_);
    const std::uint32_t round = round_;
    if (++present_ == ranks_) {
      present_ = 0;
      ++round_;
      pthread_cond_broadcast(&changed_);
    }
    std::uint64_t seen = pulses();
    auto since = std::chrono::steady_clock::now();
    bool in_time = true;
    while (round_ == round && !failed_ && in_time) {
      timespec until;
      clock_gettime(CLOCK_REALTIME, &until);
      const std::uint64_t turn = meanwhile ? second / 1000 : second / 2;
      until.tv_nsec += static_cast<long>(turn);
      until.tv_sec += until.tv_nsec / static_cast<long>(second);
      until.tv_nsec %= static_cast<long>(second);
      pthread_cond_timedwait(&changed_, &mutex_, &until);
      if (meanwhile && round_ == round && !failed_) {
        pthread_mutex_unlock(&mutex_);
        meanwhile();
        pthread_mutex_lock(&mutex_);
      } else if (const std::uint64_t now = pulses(); now != seen) {
        seen = now;
        since = std::chrono::steady_clock::now();
      }
      in_time = std::chrono::steady_clock::now() - since < std::chrono::nanoseconds(longest);
    }
    const bool met = round_ != round;
    pthread_mutex_unlock(&mutex_);
    if (!met && !in_time) throw timed_out("waited in vain for the other ranks");
    require(met, gave_up);
  }

  void failed(std::uint32_t rank, const char* why, bool late) {
    pthread_mutex_lock(&mutex_);
    failed_ = true;
    std::strncpy(seats_[rank].error, why, sizeof seats_[rank].error - 1);
    seats_[rank].timed_out = late;
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&mutex_);
  }
  std::string error_of(std::uint32_t rank) const { return seats_[rank].error; }
  bool timed_out_at(std::uint32_t rank) const { return seats_[rank].timed_out; }

  void leave_blob(std::uint32_t rank, const std::vector<std::uint8_t>& blob) {
    require(blob.size() <= sizeof seats_[rank].blob, "the blob is too long for this test");
    std::copy(blob.begin(), blob.end(), seats_[rank].blob);
    seats_[rank].blob_bytes = blob.size();
  }
  std::vector<std::vector<std::uint8_t>> blobs() const {
    std::vector<std::vector<std::uint8_t>> all;
    for (std::uint32_t r = 0; r < ranks_; ++r) all.emplace_back(seats_[r].blob, seats_[r].blob + seats_[r].blob_bytes);
    return all;
  }

private:
  struct seat {
    std::size_t blob_bytes = 0;
    std::uint8_t blob[4096];
    char error[1024] = "";
    bool timed_out = false;
  };
  const std::uint32_t ranks_;
  pthread_mutex_t mutex_;
  pthread_cond_t changed_;
  std::uint32_t round_ = 0, present_ = 0;
  bool failed_ = false;
  std::array<seat, most_ranks> seats_;
};

void member::meet() {
  place_.meet();
}

void member::meet_polling() {
  place_.meet(patience + patience_with_peers, [this] { endpoint_.poll(0); });
}

namespace {

// Memory that the processes of a launcher share.
struct hall {
  std::atomic<bool> open; // process 0 has constructed `everybody`
  alignas(meeting_place) std::byte everybody[sizeof(meeting_place)];
  alignas(meeting_place) std::byte world[sizeof(meeting_place)]; // of the test that runs
};
struct launched_here {
  hall& shared;
  std::uint32_t rank, size;
  meeting_place& world() const { return *reinterpret_cast<meeting_place*>(shared.world); }
  void meet() const { // the others may still run a test
    reinterpret_cast<meeting_place*>(shared.everybody)->meet(16 * patience);
  }
};
// Returns this process's place among those of the launcher; nullopt before join_launched().
std::optional<launched_here>& launched() {
  static std::optional<launched_here> here;
  return here;
}

// A meeting place in memory that children share if they are forked afterwards.
struct shared_place {
  explicit shared_place(std::uint32_t ranks) {
    void* p = mmap(nullptr, sizeof(meeting_place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(p != MAP_FAILED, "no shared memory for the test");
    place = new (p) meeting_place(ranks);
  }
  ~shared_place() { munmap(place, sizeof(meeting_place)); }
  meeting_place* place;
};

void run_rank(const subject& which, const world_shape& shape, std::uint32_t rank, meeting_place& place,
              const std::function<void(member&)>& body) {
  try {
    endpoint e(which, rank, shape.ranks, shape.lanes);
    place.leave_blob(rank, e.listen());
    place.meet();
    e.connect(place.blobs());
    member self(e, place);
    body(self);
    if (shape.close) e.close();
  } catch (const timed_out& e) {
    place.failed(rank, e.what(), true);
  } catch (const std::exception& e) {
    place.failed(rank, e.what(), false);
  }
}

// Runs the body as this process's rank. All processes of the launcher call it.
void run_launched(const launched_here& here, const subject& which, const world_shape& shape,
                  const std::function<void(member&)>& body) {
  if (shape.ranks > here.size)
    throw skipped("it takes " + std::to_string(shape.ranks) + " processes, and " + std::to_string(here.size) +
                  " were started");
  here.meet(); // only then has every process left the previous world
  if (here.rank == 0) new (here.shared.world) meeting_place(shape.ranks);
  here.meet();
  if (here.rank < shape.ranks) run_rank(which, shape, here.rank, here.world(), body);
  here.meet();
}

struct child {
  pid_t pid;
  std::string ended; // how it ended, if not with exit code 0
};

// Waits until all children have ended. Kills them if they hang: no call of the plugin returns in any of them
// (hang_watch). Returns true if it killed them.
bool reap(std::vector<child>& children) {
  constexpr std::chrono::seconds silence(9 * slower);
  const bool watched = pulses() > 0; // without pulses, as with --in-process, there is no limit
  std::uint64_t seen = 0;
  hang_watch watch(getpgrp(), silence);
  bool silent = false;
  std::size_t left = children.size();
  while (left) {
    for (child& c : children) {
      int status = 0;
      if (c.pid < 0 || waitpid(c.pid, &status, watched && !silent ? WNOHANG : 0) != c.pid) continue;
      c.pid = -1;
      --left;
      if (WIFSIGNALED(status)) c.ended = "signal " + std::to_string(WTERMSIG(status));
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) c.ended = "exit " + std::to_string(WEXITSTATUS(status));
      if (silent && WIFSIGNALED(status))
        c.ended = "no call of the plugin came back for " + std::to_string(silence.count()) + " s";
    }
    if (!left || silent) continue;
    if (const std::uint64_t now = pulses(); now != seen) {
      seen = now;
      watch.progress();
    }
    silent = watched && watch.hangs();
    for (const child& c : children)
      if (silent && c.pid >= 0) kill(c.pid, SIGKILL);
    if (!silent) std::this_thread::sleep_for(std::chrono::milliseconds(5)); // waitpid() has no timeout
  }
  return silent;
}

} // namespace

void join_launched(const std::filesystem::path& meeting, std::uint32_t rank, std::uint32_t size) {
  const int fd = open(meeting.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat about {};
  const bool ours = fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == geteuid();
  void* p = ours && ftruncate(fd, sizeof(hall)) == 0
                ? mmap(nullptr, sizeof(hall), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                : MAP_FAILED;
  if (fd >= 0) close(fd);
  require(p != MAP_FAILED, "no shared memory in " + meeting.string());
  hall& shared = *static_cast<hall*>(p);
  if (rank == 0) {
    new (shared.everybody) meeting_place(size);
    shared.open = true;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(4 * patience);
  while (!shared.open) { // process 0 is not ready yet
    require(std::chrono::steady_clock::now() < until, "process 0 is not there");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  launched().emplace(launched_here{shared, rank, size});
  launched()->meet();
  if (rank == 0) std::filesystem::remove(meeting);
}

std::vector<std::string> run(const subject& which, const world_shape& shape, const std::function<void(member&)>& body) {
  require(shape.ranks <= most_ranks, "too many ranks for this test");
  if (caps_of(which).flags & RG_CAP_NONE) throw skipped("it connects nobody");
  std::vector<std::string> wrong;
  std::set<std::string> causes;
  bool late = false;
  auto report = [&](std::uint32_t rank, const std::string& what) {
    if (!what.empty()) wrong.push_back("rank " + std::to_string(rank) + ": " + what);
    if (!what.empty() && what != gave_up) causes.insert(what);
  };
  const auto report_all = [&](const meeting_place& place) {
    for (std::uint32_t r = 0; r < shape.ranks; ++r) report(r, place.error_of(r));
    for (std::uint32_t r = 0; r < shape.ranks; ++r) late = late || place.timed_out_at(r);
    if (!causes.empty()) std::erase_if(wrong, [](const std::string& line) { return line.ends_with(gave_up); });
    if (causes.size() == 1 && wrong.size() == shape.ranks) wrong = {"every rank: " + *causes.begin()};
    if (late) throw timed_out(join(wrong, "; "));
  };
  if (const auto& here = launched()) {
    run_launched(*here, which, shape, body);
    report_all(here->world());
    return wrong;
  }
  shared_place shared(shape.ranks);
  if (shape.kind == as::threads) {
    std::vector<std::thread> threads;
    for (std::uint32_t r = 0; r < shape.ranks; ++r)
      threads.emplace_back([&, r] { run_rank(which, shape, r, *shared.place, body); });
    for (auto& t : threads) t.join();
  } else {
    std::fflush(nullptr); // else the children would print buffered text again
    std::cout.flush();
    std::vector<child> children;
    const pid_t parent = getpid();
    for (std::uint32_t r = 0; r < shape.ranks; ++r) {
      const pid_t forked = fork();
      require(forked >= 0, "cannot fork");
      if (forked == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // ranks must not outlive the test, however it ends
        if (getppid() != parent) _exit(1);
        run_rank(which, shape, r, *shared.place, body);
        _exit(0);
      }
      children.push_back({forked, {}});
    }
    late = reap(children);
    for (std::uint32_t r = 0; r < shape.ranks; ++r) report(r, children[r].ended);
  }
  report_all(*shared.place);
  return wrong;
}

void run_ranks(const subject& which, const world_shape& shape, const std::function<void(member&)>& body) {
  const auto wrong = run(which, shape, body);
  if (!wrong.empty()) throw failed(join(wrong, "; "));
}

} // namespace regatta::conformance
