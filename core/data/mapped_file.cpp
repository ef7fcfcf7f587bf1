// SPDX-License-Identifier: Apache-2.0
#include "data/mapped_file.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace regatta {

std::vector<std::filesystem::path>
sorted_entries(const std::filesystem::path& folder,
               const std::function<bool(const std::filesystem::directory_entry&)>& wanted) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (wanted(*i)) found.push_back(i->path());
  if (error) throw failure(exit_code::usage, fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  std::ranges::sort(found);
  return found;
}

// One mapping, for the SIGBUS handler. Entries are reused but never freed, because the handler may walk the list at any
// moment.
struct mapped_file::mapping {
  std::atomic<bool> taken{true};
  std::atomic<std::uintptr_t> begin{UINTPTR_MAX}, end{0}; // initial values match no address: nothing is mapped
  std::string name;                                       // written before begin
  mapping* next = nullptr;

  static std::atomic<mapping*> all;

  static mapping* record(std::span<const std::uint8_t> bytes, const std::string& name);
  void forget() noexcept;
};

std::atomic<mapped_file::mapping*> mapped_file::mapping::all{nullptr};

namespace {

struct sigaction before_us; // the action of SIGBUS before

} // namespace

mapped_file::mapping* mapped_file::mapping::record(std::span<const std::uint8_t> bytes, const std::string& name) {
  // Reading a mapped file that was truncated raises SIGBUS. The handler names the file before the process dies.
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int number, siginfo_t* info, void*) {
      const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
      const mapping* m = all.load();
      while (m && !(at >= m->begin.load() && at < m->end.load())) m = m->next;
      if (m) {
        // A single call, so that lines of ranks that read the same file do not mix.
        const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
        const iovec line[] = {part("data file "), part(m->name),
                              part(" was truncated while it was read: restore it, and run again\n")};
        (void)!::writev(STDERR_FILENO, line, std::size(line));
        ::signal(number, SIG_DFL);
      } else {
        ::sigaction(number, &before_us, nullptr);
      }
      // After the return the instruction runs again, and the signal takes its previous action.
    };
    ::sigaction(SIGBUS, &action, &before_us);
  });
  mapping* m = all.load();
  while (m && m->taken.exchange(true)) m = m->next; // takes the first free entry
  const bool fresh = !m;
  if (fresh) m = new mapping; // never freed
  m->name = name;
  m->end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  m->begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (fresh) {
    m->next = all.load();
    while (!all.compare_exchange_weak(m->next, m)) {
    }
  }
  return m;
}

void mapped_file::mapping::forget() noexcept {
  begin = UINTPTR_MAX;
  end = 0;
  taken = false;
}

mapped_file::mapped_file(const std::filesystem::path& path) : name_(path.string()) {
  const auto fail = [&](const char* what) {
    return failure(exit_code::usage, fmt::format("{}: cannot be {}: {}", name_, what, std::strerror(errno)));
  };
  // O_NONBLOCK: opening a pipe must not wait for a writer
  const int fd = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw fail("opened");
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    throw failure(exit_code::usage, fmt::format("{}: is not a regular file", name_));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const address = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0) : nullptr;
  const int error = errno;
  ::close(fd);
  errno = error;
  if (address == MAP_FAILED) throw fail("mapped into memory");
  bytes_ = {static_cast<const std::uint8_t*>(address), size};
  if (size > 0) mapping_ = mapping::record(bytes_, name_);
}

mapped_file::~mapped_file() {
  if (mapping_) mapping_->forget();
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : name_(std::move(other.name_)), bytes_(std::exchange(other.bytes_, {})),
      mapping_(std::exchange(other.mapping_, nullptr)) {}

} // namespace regatta
