// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <cctype>
#include <csignal>
#include <sstream>

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/wait.h>

namespace regatta::chaos {

using namespace std::chrono_literals;
using test::alive, test::read, test::within;
namespace fs = test::fs;

namespace {

// Nothing takes so long, on no machine: then it hangs.
constexpr auto hang_limit = 120s;

double seconds_since(clock::time_point t) {
  return std::chrono::duration<double>(clock::now() - t).count();
}

std::string rank_argument(std::uint32_t rank) {
  return std::string("--rank") + '\0' + std::to_string(rank) + '\0';
}

} // namespace

campaign_run::campaign_run(const campaign& c) : campaign_(c), token_("REGATTA_CHAOS=" + folder_.path.string()) {
  fs::create_directory(folder_.path / "disk");
  fs::create_directory(folder_.path / "tmp");
  std::ofstream(folder_.path / "x.toml") << c.toml;
  if (c.disturbance.kind == kind::full_disk)
    mounted_ = ::mount("tmpfs", (folder_.path / "disk").c_str(), "tmpfs", 0, "size=4m") == 0;
}

campaign_run::~campaign_run() {
  for (const pid_t p : processes()) ::kill(p, SIGKILL);
  if (reader_ >= 0) ::close(reader_);
  if (mounted_) ::umount2((folder_.path / "disk").c_str(), MNT_DETACH);
}

// Starts it in a separate process group, like a shell's job. `err`: the file for its standard error.
pid_t campaign_run::start(const std::string& more, int err) {
  std::vector<std::string> words = {REGATTA_PROGRAM, "run",    "x.toml",   "--out", "disk/r",
                                    "--progress",    "always", "--format", "json"};
  std::istringstream in(campaign_.options + " " + more);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string temporary = "TMPDIR=" + this->temporary().string(), token = token_;
  const pid_t child = ::fork();
  if (child != 0) {
    ::setpgid(child, child);
    return child;
  }
  ::setpgid(0, 0);
  if (::chdir(folder_.path.c_str()) != 0) ::_exit(99);
  ::putenv(temporary.data());
  ::putenv(token.data());
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(s, SIG_DFL); // the parent process may ignore them
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(::open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
  ::dup2(err, 2);
  ::execv(arguments[0], arguments.data());
  ::_exit(99);
}

std::vector<pid_t> campaign_run::processes() const {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
    if (read(entry.path() / "environ").find(token_) == std::string::npos) continue;
    if (const pid_t p = std::stoi(name); alive(p)) found.push_back(p);
  }
  return found;
}

std::vector<pid_t> campaign_run::ranks_of(pid_t program) const {
  std::vector<pid_t> ranks = test::children_of(program); // plugins are asked in children, too
  std::erase_if(ranks, [](pid_t p) {
    return read("/proc/" + std::to_string(p) + "/cmdline").find("--connect") == std::string::npos;
  });
  return ranks;
}

std::size_t campaign_run::finished_runs() const {
  const std::string text = read(result() / "records.jsonl");
  std::size_t count = 0;
  for (auto at = text.find("\"kind\":\"run\""); at != std::string::npos; at = text.find("\"kind\":\"run\"", at + 1))
    ++count;
  return count;
}

std::set<std::string> campaign_run::listening() const {
  std::set<std::string> mine, found;
  for (const pid_t p : processes()) {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(p) + "/fd", gone))
      if (const std::string target = fs::read_symlink(entry.path(), gone).string(); target.starts_with("socket:["))
        mine.insert(target.substr(8, target.size() - 9));
  }
  for (const std::string& inode : listening_sockets())
    if (mine.count(inode)) found.insert(inode);
  return found;
}

std::set<std::string> listening_sockets() {
  std::set<std::string> inodes;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream in(line);
      std::vector<std::string> words;
      for (std::string word; in >> word;) words.push_back(word);
      if (words.size() > 9 && words[3] == "0A") inodes.insert(words[9]); // LISTEN
    }
  }
  return inodes;
}

void campaign_run::await_moment(pid_t program, observation& o) const {
  const disturbance& d = campaign_.disturbance;
  if (!d.early) {
    const bool there = within(hang_limit, [&] {
      return !alive(program) ||
             (finished_runs() >= d.after_runs && ranks_of(program).size() > (d.kind == kind::rank ? d.rank : 0));
    });
    if (!there) o.skipped = "the moment did not come";
  }
  std::this_thread::sleep_for(d.delay); // the random moment itself, no hand-shake
  if (!alive(program)) o.skipped = "the program had ended before";
}

// The rank is stopped first: it is then known that it had not begun to exit, and that the signal will take effect.
void campaign_run::signal_rank(pid_t program, observation& o) const {
  const disturbance& d = campaign_.disturbance;
  for (const pid_t p : ranks_of(program))
    if (read("/proc/" + std::to_string(p) + "/cmdline").find(rank_argument(d.rank)) != std::string::npos) o.pid = p;
  const auto state = [&] {
    const std::string stat = read("/proc/" + std::to_string(o.pid) + "/stat");
    const auto at = stat.rfind(") ");
    return at == std::string::npos ? 'X' : stat[at + 2];
  };
  if (o.pid < 0 || ::kill(o.pid, SIGSTOP) != 0) {
    o.skipped = "the rank had ended before";
    return;
  }
  within(10s, [&] { return state() == 'T' || state() == 'Z' || state() == 'X'; });
  if (state() != 'T') {
    o.skipped = "the rank had ended before";
    return;
  }
  if (d.signal == SIGSTOP) return;
  ::kill(o.pid, d.signal);
  ::kill(o.pid, SIGCONT);
}

void campaign_run::signal_program(pid_t program, observation& o) const {
  const disturbance& d = campaign_.disturbance;
  const pid_t target = d.kind == kind::group ? -program : program;
  if (::kill(target, d.signal) != 0) o.skipped = "the program had ended before";
  if (d.signal != SIGSTOP) return;
  std::this_thread::sleep_for(d.pause);
  ::kill(target, SIGCONT);
}

void campaign_run::fill_disk() const {
  const int file = ::open((folder_.path / "disk" / "filler").c_str(), O_WRONLY | O_CREAT, 0600);
  const std::string page(4096, 'x');
  while (::write(file, page.data(), page.size()) > 0) {
  }
  ::close(file);
}

void campaign_run::disturb(pid_t program, observation& o) {
  if (campaign_.disturbance.kind == kind::hung_plugin) { // the experiment has it
    o.hit = true;
    return;
  }
  await_moment(program, o);
  if (!o.skipped.empty()) return;
  o.sockets = listening();
  switch (campaign_.disturbance.kind) {
  case kind::rank: signal_rank(program, o); break;
  case kind::coordinator:
  case kind::group: signal_program(program, o); break;
  case kind::dead_pipe:
    ::close(reader_);
    reader_ = -1;
    break;
  case kind::full_disk: fill_disk(); break;
  case kind::hung_plugin: break;
  }
  o.hit = o.skipped.empty();
}

// A failed case, or a rank that was lost after its result.
bool campaign_run::is_reported(const observation& o) const {
  return read(folder_.path / "err").find(fmt::format("pid {})", o.pid)) != std::string::npos;
}

observation campaign_run::disturbed() {
  observation o;
  int ends[2] = {-1, -1};
  const bool piped = campaign_.disturbance.kind == kind::dead_pipe;
  if (piped && ::pipe2(ends, O_CLOEXEC) != 0) ends[1] = -1;
  if (!piped) ends[1] = ::open((folder_.path / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  reader_ = ends[0];
  const pid_t program = start("", ends[1]);
  ::close(ends[1]);
  disturb(program, o);
  const clock::time_point then = clock::now();
  int status = 0;
  const bool ended = within(hang_limit, [&] {
    if (o.hit && o.pid > 0 && !o.seconds && is_reported(o)) o.seconds = seconds_since(then);
    return ::waitpid(program, &status, WNOHANG) == program;
  });
  if (!ended) {
    ::kill(program, SIGKILL);
    ::waitpid(program, &status, 0);
    o.skipped = "hang";
  }
  if (o.pid > 0 && !o.seconds && is_reported(o)) o.seconds = seconds_since(then);
  const kind k = campaign_.disturbance.kind;
  if (k == kind::coordinator || k == kind::group || k == kind::hung_plugin) o.seconds = seconds_since(then);
  o.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  o.out = read(folder_.path / "out");
  o.err = read(folder_.path / "err");
  return o;
}

observation campaign_run::resumed() {
  std::error_code none;
  fs::remove(folder_.path / "disk" / "filler", none);
  const int err = ::open((folder_.path / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  observation o;
  const pid_t program = start("--resume", err);
  ::close(err);
  int status = 0;
  if (!within(hang_limit, [&] { return ::waitpid(program, &status, WNOHANG) == program; })) {
    ::kill(program, SIGKILL);
    ::waitpid(program, &status, 0);
    o.skipped = "hang";
  }
  o.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  o.out = read(folder_.path / "out");
  o.err = read(folder_.path / "err");
  return o;
}

} // namespace regatta::chaos
