// SPDX-License-Identifier: Apache-2.0
#include "check/world.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::conformance {

constexpr std::uint32_t most_ranks = 8;

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

  void meet(std::uint64_t longest = patience) {
    pthread_mutex_lock(&mutex_);
    const std::uint32_t round = round_;
    if (++present_ == ranks_) {
      present_ = 0;
      ++round_;
      pthread_cond_broadcast(&changed_);
    }
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += static_cast<time_t>(longest / second);
    bool in_time = true;
    while (round_ == round && !failed_ && in_time) in_time = pthread_cond_timedwait(&changed_, &mutex_, &until) == 0;
    const bool met = round_ != round;
    pthread_mutex_unlock(&mutex_);
    require(met, in_time ? "gave up because another rank failed" : "waited in vain for the other ranks");
  }

  void failed(std::uint32_t rank, const char* why) {
    pthread_mutex_lock(&mutex_);
    failed_ = true;
    std::strncpy(seats_[rank].error, why, sizeof seats_[rank].error - 1);
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&mutex_);
  }
  std::string error_of(std::uint32_t rank) const { return seats_[rank].error; }

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

namespace {

// Where processes meet that a launcher has started.
struct hall {
  std::atomic<bool> open; // `everybody` is there: process 0 has made it
  alignas(meeting_place) std::byte everybody[sizeof(meeting_place)];
  alignas(meeting_place) std::byte world[sizeof(meeting_place)]; // of the test that runs
};
struct launched_here {
  hall& shared;
  std::uint32_t rank, size;
  meeting_place& world() const { return *reinterpret_cast<meeting_place*>(shared.world); }
  void meet() const { // a world may take its time
    reinterpret_cast<meeting_place*>(shared.everybody)->meet(4 * patience);
  }
};
// Nothing: this process was started by no launcher.
std::optional<launched_here>& launched() {
  static std::optional<launched_here> here;
  return here;
}

// Shared with the children that are forked after it.
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
  } catch (const std::exception& e) {
    place.failed(rank, e.what());
  }
}

// As the rank that this process is, in all processes at once.
void run_launched(const launched_here& here, const subject& which, const world_shape& shape,
                  const std::function<void(member&)>& body) {
  if (shape.ranks > here.size)
    throw skipped("it takes " + std::to_string(shape.ranks) + " processes, and " + std::to_string(here.size) +
                  " were started");
  here.meet(); // nobody is in the world before any more
  if (here.rank == 0) new (here.shared.world) meeting_place(shape.ranks);
  here.meet();
  if (here.rank < shape.ranks) run_rank(which, shape, here.rank, here.world(), body);
  here.meet();
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
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience);
  while (!shared.open) { // process 0 has not got so far
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
  auto report = [&](std::uint32_t rank, const std::string& what) {
    if (!what.empty()) wrong.push_back("rank " + std::to_string(rank) + ": " + what);
  };
  if (const auto& here = launched()) {
    run_launched(*here, which, shape, body);
    for (std::uint32_t r = 0; r < shape.ranks; ++r) report(r, here->world().error_of(r));
    return wrong;
  }
  shared_place shared(shape.ranks);
  if (shape.kind == as::threads) {
    std::vector<std::thread> threads;
    for (std::uint32_t r = 0; r < shape.ranks; ++r)
      threads.emplace_back([&, r] { run_rank(which, shape, r, *shared.place, body); });
    for (auto& t : threads) t.join();
  } else {
    std::fflush(nullptr); // or the children's exit says it once more
    std::cout.flush();
    std::vector<pid_t> children;
    for (std::uint32_t r = 0; r < shape.ranks; ++r) {
      const pid_t child = fork();
      require(child >= 0, "cannot fork");
      if (child == 0) {
        run_rank(which, shape, r, *shared.place, body);
        _exit(0);
      }
      children.push_back(child);
    }
    for (std::uint32_t r = 0; r < shape.ranks; ++r) {
      int status = 0;
      waitpid(children[r], &status, 0);
      if (WIFSIGNALED(status)) report(r, "signal " + std::to_string(WTERMSIG(status)));
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) report(r, "exit " + std::to_string(WEXITSTATUS(status)));
    }
  }
  for (std::uint32_t r = 0; r < shape.ranks; ++r) report(r, shared.place->error_of(r));
  return wrong;
}

void run_ranks(const subject& which, const world_shape& shape, const std::function<void(member&)>& body) {
  const auto wrong = run(which, shape, body);
  if (!wrong.empty()) throw failed(join(wrong, "; "));
}

} // namespace regatta::conformance
