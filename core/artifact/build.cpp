// SPDX-License-Identifier: Apache-2.0
#include "artifact/build.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/registry.hpp"
#include "report/stored_document.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_lines = 20; // of a failed build's output

// Runs a program from PATH, without a shell, and appends its output to `log`. Returns whether it exited with 0.
bool run_program(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t ignored_here; // by main()
  sigemptyset(&ignored_here);
  sigaddset(&ignored_here, SIGPIPE);
  sigaddset(&ignored_here, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &ignored_here);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error)
    throw failure(exit_code::skipped,
                  fmt::format("{}: {}; building needs it in PATH", words[0], std::generic_category().message(error)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

std::optional<fs::path> sdk_prefix() {
  const fs::path prefix = (built_in_folder() / "../..").lexically_normal();
  std::error_code error;
  return fs::exists(prefix / "lib/cmake/regatta", error) ? std::optional(prefix) : std::nullopt;
}

std::vector<fs::path> build_plugin(const fs::path& source, const fs::path& build, const fs::path& prefix) {
  const fs::path log = build.string() + ".log";
  const bool built = run_program({"cmake", "-S", source.string(), "-B", build.string(), "-DCMAKE_BUILD_TYPE=Release",
                                  "-DCMAKE_PREFIX_PATH=" + prefix.string()},
                                 log) &&
                     run_program({"cmake", "--build", build.string()}, log);
  if (!built) {
    std::vector<std::string> lines = lines_of(content_of(log).value_or(""));
    if (lines.size() > most_lines) lines.erase(lines.begin(), lines.end() - most_lines);
    for (std::string& line : lines) line = "  " + cleaned(line);
    throw failure(exit_code::skipped, fmt::format("{} cannot be built here; the end of {}:\n{}", source.string(),
                                                  log.string(), join(lines, "\n")));
  }
  std::vector<fs::path> plugins;
  std::error_code error;
  for (fs::recursive_directory_iterator at(build, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".so" && at->is_regular_file() &&
        at->path().string().find("/CMakeFiles/") == std::string::npos)
      plugins.push_back(at->path());
  std::ranges::sort(plugins);
  return plugins;
}

} // namespace regatta
