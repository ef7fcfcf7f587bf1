// SPDX-License-Identifier: Apache-2.0
//
// Campaigns whose files, standard output or standard error cannot be written: all runs take place, and what is lost is
// said once.
#include "campaign_folder.hpp"

#include <csignal>

#include <sys/mount.h>

using namespace regatta::test;

namespace {

// Starts the program with these descriptors as standard output and standard error.
pid_t start_with(const temporary_folder& s, const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  signal(SIGPIPE, SIG_DFL);
  if (chdir(s.path.c_str()) != 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
  execv(arguments[0], arguments.data());
  _exit(99);
}

// Three cases, of which the first is skipped, with its reason on standard error.
const std::string skipping =
    tiny + "baseline = false\nrepeats = 1\n[sweep]\n\"transport.plugin\" = [\"null\", \"shm\", \"tcp\"]\n";

void check_others_ran(const temporary_folder& s) {
  const json r = result(s);
  REQUIRE(r.is_object());
  REQUIRE(r.at("results").size() == 3);
  CHECK(r.at("results").at(0).at("status") == "skipped");
  CHECK(r.at("results").at(1).at("status") == "ok");
  CHECK(r.at("results").at(2).at("status") == "ok");
}

} // namespace

TEST_CASE("standard error that cannot be written costs no run and no exit code") {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  int broken[2];
  REQUIRE(pipe2(broken, O_CLOEXEC) == 0);
  close(broken[0]); // there is no reader any more
  for (const int err : {full, broken[1]}) {
    const temporary_folder s;
    std::ofstream(s.path / "x.toml") << skipping;
    std::vector<std::string> words = command();
    words.back() = "always";
    CHECK(code_of(start_with(s, words, null, err)) == 0);
    check_others_ran(s);
    CHECK(code_of(start_with(s, words, null, err)) == 2); // the folder holds a campaign
    CHECK(code_of(start_with(s, {REGATTA_PROGRAM, "fly"}, null, err)) == 2);
  }
  for (const int fd : {null, full, broken[1]}) close(fd);
}

TEST_CASE("standard output that is lost is a failure, and all cases ran") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << skipping;
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC),
            err = open((s.path / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (const char* format : {"csv", "json", "console"}) {
    CAPTURE(format);
    fs::remove_all(s.path / "r");
    REQUIRE(ftruncate(err, 0) == 0);
    lseek(err, 0, SEEK_SET);
    CHECK(code_of(start_with(s, command(std::string("--format ") + format), full, err)) == 1);
    CHECK(read(s.path / "err").find("standard output could not be written: No space left on device") !=
          std::string::npos);
    check_others_ran(s);
  }
  close(full);
  close(err);
}

namespace {

const std::string four_cases =
    tiny + "baseline = false\nrepeats = 1\n[sweep]\n\"measure.steps\" = [500, 501, 502, 503]\n";

std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

} // namespace

TEST_CASE("a folder that is removed during a campaign is made again, with all results") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << four_cases;
  const pid_t run = start(s, command());
  REQUIRE(wait_for_runs(s, run, 1));
  fs::rename(s.path / "r", s.path / "gone"); // at once, as remove_all() is not
  fs::remove_all(s.path / "gone");
  CHECK(code_of(run) == 0);
  INFO(read(s.path / "err"));
  check_whole(s, 4, 1);
  CHECK(fs::exists(s.path / "r" / "resolved-4.toml"));
}

TEST_CASE("a result that cannot be written is said once; the campaign runs to its end and fails there") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << four_cases;
  const int out = open((s.path / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
            err = open((s.path / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const pid_t run = start_with(s, command(), out, err);
  REQUIRE(wait_for_runs(s, run, 1));
  const fs::path file = s.path / "r" / "result.json";
  REQUIRE(within(patience, [&] { // the program may just replace it
    std::error_code ignored;
    fs::remove(file, ignored);
    return fs::create_directory(file, ignored);
  }));
  CHECK(code_of(run) == 1);
  const std::string said = read(s.path / "err");
  INFO(said);
  CHECK(times_in(said, "the campaign goes on") == 1);
  CHECK(said.find("results are missing on the disk") != std::string::npos);
  CHECK(times_in(read(s.path / "out"), "samples/s") >= 1);
  CHECK(times_in(read(s.path / "out"), "failed") == 0);
  CHECK(runs_of_cases(s).size() == 4); // the records were no matter
  fs::remove_all(file);
  CHECK(program(s, "run x.toml --out r --progress never --resume").code == 0);
  check_whole(s, 4, 1);
}

TEST_CASE("a full disk is said, and the campaign runs to its end") {
  const temporary_folder s;
  const fs::path disk = s.path / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=320k") != 0) {
    MESSAGE("no tmpfs can be mounted here (it takes root): report_file_test alone looks at full disks");
    return;
  }
  {
    std::ofstream(s.path / "x.toml") << four_cases;
    const outcome o = program(s, "run x.toml --out disk/r --progress never");
    INFO(o.err);
    CHECK(o.code == 1);
    CHECK(times_in(o.err, "No space left on device; the campaign goes on") == 1);
    CHECK(times_in(o.out, "shm") >= 1);
    CHECK(o.out.find("failed") == std::string::npos);
    const json r = parsed(read(disk / "r" / "result.json"), true);
    CHECK(r.is_object()); // the last one that had room
  }
  CHECK(umount(disk.c_str()) == 0);
}
