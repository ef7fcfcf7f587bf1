// SPDX-License-Identifier: Apache-2.0
#include "check/harness/progress.hpp"

#include <atomic>
#include <chrono>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

struct shared_progress {
  std::atomic<std::uint64_t> count{1};
  std::atomic<std::int64_t> last_write{0}; // when the last byte was written, in fifths of a second
};
shared_progress* progress = nullptr; // in memory that forked processes share; null: no parent reads it
int progress_descriptor = -1;

} // namespace

void report_progress_to(int descriptor) {
  void* p = mmap(nullptr, sizeof(shared_progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return; // then the parent's limit applies to the whole test
  progress_descriptor = descriptor;
  progress = new (p) shared_progress;
}

void report_progress() noexcept {
  if (!progress) return;
  ++progress->count;
  using fifths = std::chrono::duration<std::int64_t, std::ratio<1, 5>>;
  const auto now = std::chrono::duration_cast<fifths>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (progress->last_write.exchange(now) != now)
    (void)!write(progress_descriptor, "\n", 1); // white space to the parser of the report
}

std::uint64_t progress_count() noexcept {
  return progress ? progress->count.load() : 0;
}

} // namespace regatta::conformance
