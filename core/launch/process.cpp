// SPDX-License-Identifier: Apache-2.0
#include "launch/process.hpp"
#include "base/cpu_mask.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "launch/memory.hpp"

namespace regatta {

namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw failure(exit_code::run, fmt::format("cannot {}: {}", what, std::strerror(error)));
}

pipe_ends new_pipe() {
  pipe_ends ends = make_pipe();
  if (ends.read.get() < 0 || ends.write.get() < 0) fail("make a pipe", errno);
  return ends;
}

// Everything that the child needs, prepared before the fork: after it, other threads of the parent may hold any lock
// for ever.
struct child_plan {
  const char* program;
  char* const* argv;
  pid_t parent;
  int input, output, errors, secret, inherited, trouble;
  const cpu_set_t* cpus;
  std::size_t cpus_bytes;
  unsigned descriptors; // limit of descriptors
  const char* oom_score;
};

enum class stage : int { parent_gone, affinity, exec };

struct trouble {
  stage at;
  int error;
};

// Calls only async-signal-safe functions.
[[noreturn]] void become_child(const child_plan& plan) noexcept {
  const auto give_up = [&](stage at) {
    const trouble t{at, errno};
    (void)!::write(plan.trouble, &t, sizeof t);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  take_oom_score(plan.oom_score);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) give_up(stage::parent_gone); // it died before prctl(), so no signal would come

  struct sigaction action {};
  for (int signal = 1; signal < NSIG; ++signal) {
    action.sa_handler = signal == SIGINT || signal == SIGPIPE || signal == SIGXFSZ ? SIG_IGN : SIG_DFL;
    ::sigaction(signal, &action, nullptr); // fails for SIGKILL, SIGSTOP and signals that the C library reserves
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  ::dup2(plan.input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.errors, STDERR_FILENO);
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) // Linux before 5.11
    for (unsigned fd = 3; fd < plan.descriptors; ++fd) ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  ::fcntl(plan.secret, F_SETFD, 0);
  if (plan.inherited > STDERR_FILENO) ::fcntl(plan.inherited, F_SETFD, 0);

  if (plan.cpus != nullptr && ::sched_setaffinity(0, plan.cpus_bytes, plan.cpus) != 0) give_up(stage::affinity);
  ::execv(plan.program, plan.argv);
  give_up(stage::exec);
  ::_exit(127);
}

// Handlers of the parent must not run in the child: they would act on descriptors that both share.
class all_signals_blocked {
public:
  all_signals_blocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &saved_);
  }
  ~all_signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }

private:
  sigset_t saved_;
};

} // namespace

process start_process(const std::string& program, const std::function<std::vector<std::string>(int)>& arguments,
                      const blob& secret, const std::vector<int>& cpus, int inherited) {
  const unique_fd input = above_standard(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  if (input.get() < 0) fail("open /dev/null", errno);
  auto output = new_pipe(), errors = new_pipe(), key = new_pipe(), problem = new_pipe();
  // A pipe holds at least 4 KiB, so this does not block.
  if (::write(key.write.get(), secret.data(), secret.size()) != static_cast<ssize_t>(secret.size()))
    fail("hand over the secret", errno);
  key.write.reset();

  auto words = arguments(key.read.get());
  std::vector<char*> argv;
  std::string name = program;
  argv.push_back(name.data());
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const cpu_mask mask(cpus);
  const std::string oom_score = raised_oom_score();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const child_plan plan{
      program.c_str(),  argv.data(),        ::getpid(),
      input.get(),      output.write.get(), errors.write.get(),
      key.read.get(),   inherited,          problem.write.get(),
      mask.set(),       mask.bytes(),       static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 1U << 20)),
      oom_score.c_str()};

  process out;
  {
    const all_signals_blocked blocked;
    out.pid = ::fork();
    if (out.pid == 0) become_child(plan);
  }
  if (out.pid < 0) fail("start a process", errno);
  problem.write.reset();

  // Returns when exec closes the pipe or the child reports an error: within milliseconds.
  trouble t{};
  ssize_t got = 0;
  do got = ::read(problem.read.get(), &t, sizeof t);
  while (got < 0 && errno == EINTR);
  // By number, because glibc 2.36 declares pidfd_open without extern "C".
  out.handle = unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, out.pid, 0)));
  const int no_handle = out.handle.get() < 0 ? errno : 0;
  if (got != 0 || no_handle != 0) {
    kill_process(out);
    reap_process(out);
    if (no_handle != 0) fail("watch a process (that takes Linux 5.4 or newer)", no_handle);
    if (t.at == stage::affinity) fail(fmt::format("run on the CPUs [{}]", fmt::join(cpus, ", ")), t.error);
    fail(fmt::format("start {}", program), t.error);
  }
  out.output = std::move(output.read);
  out.errors = std::move(errors.read);
  return out;
}

void kill_process(const process& p) noexcept {
  if (p.pid <= 0) return;
  ::kill(-p.pid, SIGKILL);
  ::kill(p.pid, SIGKILL);
}

bool is_stopped(pid_t pid) noexcept {
  std::array<char, 64> path{};
  *fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/stat", pid).out = '\0';
  const unique_fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{}; // PID (NAME) STATE ...; a name is 15 characters at most
  const ssize_t got = file.get() < 0 ? 0 : ::read(file.get(), text.data(), text.size());
  const std::string_view line(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const auto name_end = line.rfind(')');
  return name_end != std::string_view::npos && name_end + 2 < line.size() && line[name_end + 2] == 'T';
}

int reap_process(process& p) noexcept {
  // The number of the group cannot be reused before its leader is reaped: wait without reaping, kill the group, then
  // reap.
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(p.pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ::kill(-p.pid, SIGKILL);
  int status = 0;
  while (::waitpid(p.pid, &status, 0) < 0 && errno == EINTR) {
  }
  p.pid = -1;
  return status;
}

std::string describe_status(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name != nullptr ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", WTERMSIG(status));
}

} // namespace regatta
