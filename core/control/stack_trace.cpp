// SPDX-License-Identifier: Apache-2.0
#include "control/stack_trace.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace regatta {

namespace {

constexpr int deepest = 48;
constexpr int own_frames = 2; // of the handler, and of the kernel's call of it
constexpr std::int64_t patience_ns = 200'000'000;

// Filled by the signal handler; read after the handler has posted `done`.
struct {
  std::atomic<pid_t> wanted{0}; // reset by the caller that withdraws its request, or by the handler that serves it
  std::array<void*, deepest> frames{};
  int count = 0;
  sem_t done{};
} capture;

int stack_signal() {
  return SIGRTMIN + 6; // the C library uses the first two, profilers often the last
}

void on_stack_signal(int) {
  const int error = errno;
  auto me = static_cast<pid_t>(::syscall(SYS_gettid));
  if (capture.wanted.compare_exchange_strong(me, 0)) {
    capture.count = ::backtrace(capture.frames.data(), deepest);
    ::sem_post(&capture.done);
  }
  errno = error;
}

bool wait_for_capture() {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += patience_ns;
  if (until.tv_nsec >= 1'000'000'000) {
    until.tv_nsec -= 1'000'000'000;
    ++until.tv_sec;
  }
  while (::sem_timedwait(&capture.done, &until) != 0)
    if (errno != EINTR) return false;
  return true;
}

std::string name_of(void* address, bool innermost) {
  // A return address may be the first byte behind the calling function.
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(at - (innermost ? 0 : 1)), &info) == 0 || !info.dli_fname)
    return fmt::format("{:#x}", at);
  std::filesystem::path file = info.dli_fname;
  std::error_code gone;
  if (file == "/proc/self/exe") file = std::filesystem::read_symlink(file, gone); // ranks are started under this name
  const std::string library = file.filename();
  if (!info.dli_sname) return fmt::format("{}+{:#x}", library, at - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status),
                                                     std::free);
  return fmt::format("{}+{:#x} ({})", plain ? plain.get() : info.dli_sname,
                     at - reinterpret_cast<std::uintptr_t>(info.dli_saddr), library);
}

} // namespace

void prepare_stacks() {
  static const bool once = [] { return ::sem_init(&capture.done, 0, 0) == 0; }();
  if (!once) return;
  std::array<void*, 2> frames{};
  ::backtrace(frames.data(), static_cast<int>(frames.size())); // loads libgcc_s, which allocates memory
  struct sigaction action {};
  action.sa_handler = on_stack_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(stack_signal(), &action, nullptr);
}

std::vector<std::string> stack_of(pid_t thread) {
  while (::sem_trywait(&capture.done) == 0) { // drop the capture of a thread that answered too late
  }
  capture.wanted.store(thread);
  if (::syscall(SYS_tgkill, ::getpid(), thread, stack_signal()) != 0 || !wait_for_capture()) {
    // Either the request is withdrawn here and the handler does nothing, or the handler is running and posts soon.
    if (pid_t expected = thread; capture.wanted.compare_exchange_strong(expected, 0) || !wait_for_capture()) return {};
  }
  std::vector<std::string> out;
  for (int i = own_frames; i < capture.count; ++i)
    out.push_back(name_of(capture.frames[static_cast<std::size_t>(i)], i == own_frames));
  return out;
}

} // namespace regatta
