// SPDX-License-Identifier: Apache-2.0
#include "control/status_page.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.hpp"

namespace regatta {

// A ring of operations, so that a reader never sees an incomplete text, even if the writer dies within a write. A
// writer takes a ticket, fills the entry of that number, and then publishes the ticket. An entry is reused only after
// all other entries.
struct status_page::layout {
  static constexpr std::uint64_t ring = 32;
  struct entry {
    std::atomic<std::uint32_t> pace;
    std::array<std::atomic<char>, 60> text;
  };
  std::atomic<std::uint64_t> step, samples, work, rounds;
  std::array<std::atomic<std::int32_t>, 3> waits; // number of waiting threads by `waiting`
  std::atomic<std::uint64_t> taken, published;    // tickets; the first is 1
  std::array<entry, ring> operations;
};

namespace {
constexpr std::size_t page_bytes = 4096;
}

void status_page::map(int descriptor) {
  static_assert(sizeof(layout) <= page_bytes);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<char>::is_always_lock_free);
  void* at = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED)
    throw failure(exit_code::run, fmt::format("cannot map a rank's status page: {}", std::strerror(errno)));
  page_.reset(static_cast<layout*>(at));
}

void status_page::unmap::operator()(layout* page) const noexcept {
  ::munmap(page, page_bytes);
}

status_page::status_page() : descriptor_(::memfd_create("regatta-status", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (descriptor_.get() < 0 || ::ftruncate(descriptor_.get(), page_bytes) != 0 ||
      ::fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    throw failure(exit_code::run, fmt::format("cannot create a rank's status page: {}", std::strerror(errno)));
  map(descriptor_.get());
}

status_page::status_page(int descriptor) {
  struct stat s {};
  if (::fstat(descriptor, &s) != 0 || s.st_size != static_cast<off_t>(page_bytes))
    throw failure(exit_code::usage, fmt::format("descriptor {} is no rank's status page; ranks are started by "
                                                "`regatta run`, not by hand",
                                                descriptor));
  map(descriptor);
  ::close(descriptor);
}

void status_page::operation(const char* what, pace p) noexcept {
  const std::uint64_t ticket = page_->taken.fetch_add(1, std::memory_order_acq_rel) + 1;
  layout::entry& e = page_->operations[ticket % layout::ring];
  e.pace.store(static_cast<std::uint32_t>(p), std::memory_order_relaxed);
  std::size_t i = 0;
  for (; what && what[i] && i + 1 < e.text.size(); ++i) e.text[i].store(what[i], std::memory_order_relaxed);
  e.text[i].store('\0', std::memory_order_relaxed);
  page_->published.store(ticket, std::memory_order_release);
  worked();
}

void status_page::progress(std::uint64_t step, std::uint64_t samples) noexcept {
  page_->samples.store(samples, std::memory_order_relaxed);
  page_->step.store(step, std::memory_order_release);
  worked();
}

void status_page::worked() noexcept {
  page_->work.fetch_add(1, std::memory_order_relaxed);
}

void status_page::round() noexcept {
  page_->rounds.fetch_add(1, std::memory_order_relaxed);
}

void status_page::begin_wait(waiting what) noexcept {
  page_->waits[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
}

void status_page::end_wait(waiting what) noexcept {
  page_->waits[static_cast<std::size_t>(what)].fetch_sub(1, std::memory_order_relaxed);
}

rank_status status_page::read() const {
  rank_status s;
  s.work = page_->work.load(std::memory_order_acquire);
  s.step = page_->step.load(std::memory_order_acquire);
  s.samples = page_->samples.load(std::memory_order_relaxed);
  s.rounds = page_->rounds.load(std::memory_order_relaxed);
  // `peers` wins: a server's main thread runs the strategy all the time
  for (const waiting what : {waiting::coordinator, waiting::peers})
    if (page_->waits[static_cast<std::size_t>(what)].load(std::memory_order_relaxed) > 0) s.waits = what;
  // Retry if the writer has come round to the entry meanwhile. After 8 attempts any entry will do: the rank is
  // evidently busy.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint64_t ticket = page_->published.load(std::memory_order_acquire);
    if (ticket == 0) break;
    const layout::entry& e = page_->operations[ticket % layout::ring];
    s.pace = static_cast<pace>(e.pace.load(std::memory_order_relaxed));
    s.operation.clear();
    for (const auto& c : e.text) {
      const char letter = c.load(std::memory_order_relaxed);
      if (!letter) break;
      s.operation += letter;
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (page_->taken.load(std::memory_order_relaxed) < ticket + layout::ring) break;
  }
  return s;
}

} // namespace regatta
