// SPDX-License-Identifier: Apache-2.0
//
// The folder of a campaign: what is on disk after crashes, on full disks, and beside another process.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "files/write_atomically.hpp"
#include "report/record_file.hpp"
#include "report/result_folder.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using nlohmann::json;
using test::temporary_folder;
namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

// Returns the text of the failure; empty if there is none.
template <class F> std::string refusal(F f) {
  try {
    f();
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::usage);
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("a file is replaced as a whole, and nothing else is left") {
  temporary_folder folder;
  const fs::path file = folder.path / "result.json";
  write_atomically(file, "one");
  write_atomically(file, "two");
  CHECK(content_of(file) == "two");
  CHECK(files_in(folder.path) == 1);
  CHECK_THROWS_AS(write_atomically(folder.path / "no" / "folder.json", "x"), failure);
}

TEST_CASE("where the file cannot be replaced, the old one stays") {
  temporary_folder folder;
  const fs::path file = folder.path / "result.json";
  fs::create_directories(file / "occupied"); // rename() does not replace a folder by a file
  CHECK_THROWS_AS(write_atomically(file, "x"), failure);
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("a link that somebody put in the place of a file is replaced, not followed") {
  temporary_folder folder;
  write(folder.path / "theirs", "theirs");
  fs::create_symlink(folder.path / "theirs", folder.path / "result.json");
  write_atomically(folder.path / "result.json", "ours");
  CHECK(content_of(folder.path / "theirs") == "theirs");
  CHECK(content_of(folder.path / "result.json") == "ours");
  CHECK_FALSE(fs::is_symlink(folder.path / "result.json"));
  fs::create_symlink(folder.path / "theirs", folder.path / "records.jsonl");
  CHECK_THROWS_AS(record_file(folder.path / "records.jsonl"), failure);
}

namespace {

struct reading {
  std::vector<json> records;
  std::vector<std::string> ignored;
};

reading read_back(const fs::path& file) {
  reading r;
  record_file f(file);
  r.ignored = f.read([&](json&& record) { r.records.push_back(std::move(record)); });
  return r;
}

const std::vector<json> three = {{{"a", 1}}, {{"b", 0.1}, {"c", nullptr}}, {{"text", "line\nend \u00e9"}}};

void write_three(const fs::path& file) {
  record_file f(file);
  for (const json& record : three) f.append(record);
  f.write();
}

} // namespace

TEST_CASE("records come back as they went, and more are added behind them") {
  temporary_folder folder;
  const fs::path file = folder.path / "records.jsonl";
  CHECK(read_back(file).records.empty());
  write_three(file);
  CHECK(read_back(file).records == three);
  CHECK(read_back(file).ignored.empty());
  {
    record_file f(file);
    f.read([](json&&) {});
    f.append({{"d", 2}});
    f.write();
  }
  CHECK(read_back(file).records.size() == 4);
}

TEST_CASE("a file that cannot be opened for reading keeps its records") {
  temporary_folder folder;
  const fs::path file = folder.path / "records.jsonl", kept = folder.path / "kept.jsonl";
  write_three(file);
  record_file f(file);
  fs::rename(file, kept);
  fs::create_symlink(file, file); // a loop, which cannot be opened
  CHECK_THROWS_AS(f.read([](json&&) {}), failure);
  CHECK(read_back(kept).records == three);
}

TEST_CASE("wherever a crash cuts the file, what was whole stays, and what follows is whole again") {
  temporary_folder folder;
  const fs::path file = folder.path / "records.jsonl";
  write_three(file);
  const std::string text = content_of(file);
  const std::size_t first = text.find('\n') + 1, second = text.find('\n', first) + 1;
  for (std::size_t length = 0; length <= text.size(); ++length) {
    CAPTURE(length);
    write(file, text.substr(0, length));
    const std::size_t whole = length == text.size() ? 3 : length >= second ? 2 : length >= first ? 1 : 0;
    const bool torn = length != 0 && length != first && length != second && length != text.size();
    {
      record_file f(file);
      std::vector<json> records;
      const auto ignored = f.read([&](json&& record) { records.push_back(std::move(record)); });
      REQUIRE(records == std::vector<json>(three.begin(), three.begin() + static_cast<std::ptrdiff_t>(whole)));
      REQUIRE(ignored.size() == (torn ? 1 : 0));
      if (torn) REQUIRE(ignored[0].find(": the last record is incomplete; it is ignored") != std::string::npos);
      f.append({{"new", true}});
      f.write();
    }
    const reading again = read_back(file);
    REQUIRE(again.ignored.empty());
    REQUIRE(again.records.size() == whole + 1);
    REQUIRE(again.records.back() == json{{"new", true}});
  }
}

TEST_CASE("a damaged record is said and ignored, whichever byte it is, and the others stay") {
  temporary_folder folder;
  const fs::path file = folder.path / "records.jsonl";
  write_three(file);
  const std::string text = content_of(file);
  const std::size_t first = text.find('\n') + 1, second = text.find('\n', first);
  for (std::size_t at = first; at < second; ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write(file, damaged);
    const reading r = read_back(file);
    CAPTURE(at);
    REQUIRE(r.records == std::vector<json>{three[0], three[2]});
    REQUIRE(r.ignored.size() == 1);
    REQUIRE(r.ignored[0].find("records.jsonl:2: this record is damaged") != std::string::npos);
  }
}

TEST_CASE("a record that nests without end is refused before anything walks it") {
  temporary_folder folder;
  const fs::path file = folder.path / "records.jsonl";
  json deep = 1;
  for (int i = 0; i < 200; ++i) deep = json::array({std::move(deep)});
  {
    record_file f(file);
    f.append(deep);
    f.write();
  }
  const reading r = read_back(file);
  CHECK(r.records.empty());
  REQUIRE(r.ignored.size() == 1);
  CHECK(r.ignored[0].find("nested more than 64 deep") != std::string::npos);
}

namespace {

// Files of this process can have so many bytes, until it ends: a full disk.
class small_disk {
public:
  explicit small_disk(rlim_t bytes) {
    before_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was_);
    const rlimit now{bytes, was_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~small_disk() {
    setrlimit(RLIMIT_FSIZE, &was_);
    std::signal(SIGXFSZ, before_);
  }

private:
  rlimit was_{};
  void (*before_)(int);
};

json result_of(int number) {
  return {{"number", number}, {"text", std::string(3000, 'x')}};
}

int number_in(const result_folder& folder) {
  return json::parse(content_of(folder.result())).at("number");
}

} // namespace

TEST_CASE("a disk that is full for a while costs nothing: all is written once there is room") {
  temporary_folder folder;
  {
    result_folder results(folder.path / "r", false);
    results.add_file("resolved.toml", "x = 1\n");
    results.append(three[0]);
    results.set_result(result_of(1));
    CHECK(results.write() == "");
    {
      const small_disk full(2000);
      results.append({{"long", std::string(5000, 'y')}});
      results.set_result(result_of(2));
      CHECK(results.write().find("File too large") != std::string::npos);
      results.append(three[2]);
      CHECK(results.write() != "");
      CHECK(number_in(results) == 1); // the old result is whole
    }
    CHECK(results.write() == "");
    CHECK(number_in(results) == 2);
    CHECK(files_in(folder.path / "r") == 4); // with the lock; no temporary file is left
  }
  const reading r = read_back(folder.path / "r" / "records.jsonl");
  CHECK(r.ignored.empty());
  REQUIRE(r.records.size() == 3);
  CHECK(r.records[0] == three[0]);
  CHECK(r.records[2] == three[2]);
}

TEST_CASE("a folder that is removed is made again with everything, and its lock") {
  temporary_folder folder;
  const fs::path path = folder.path / "a" / "r";
  {
    result_folder results(path, false);
    results.add_file("resolved.toml", "x = 1\n");
    results.append(three[0]);
    results.set_result(result_of(1));
    REQUIRE(results.write() == "");
    fs::remove_all(folder.path / "a");
    results.append(three[1]);
    results.set_result(result_of(2));
    CHECK(results.write() == "");
    CHECK(number_in(results) == 2);
    CHECK(content_of(path / "resolved.toml") == "x = 1\n");
    CHECK(fs::exists(path / "lock"));
  }
  CHECK_FALSE(fs::exists(path / "lock"));
  CHECK(read_back(path / "records.jsonl").records == std::vector<json>{three[0], three[1]});
}

TEST_CASE("a result whose name is taken by a folder does not stop the records") {
  temporary_folder folder;
  result_folder results(folder.path, false);
  results.append(three[0]);
  results.set_result(result_of(1));
  REQUIRE(results.write() == "");
  fs::remove(results.result());
  fs::create_directories(results.result() / "occupied");
  results.append(three[1]);
  results.set_result(result_of(2));
  CHECK(results.write().find("result.json: rename: Is a directory") != std::string::npos);
  CHECK(content_of(folder.path / "records.jsonl").find("0.1") != std::string::npos);
  fs::remove_all(results.result());
  CHECK(results.write() == "");
  CHECK(number_in(results) == 2);
}

TEST_CASE("a folder that holds a campaign is refused, unless it is resumed") {
  for (const char* name : {"result.json", "records.jsonl", "resolved.toml", "resolved-7.toml", "as-written.toml"}) {
    temporary_folder folder;
    write(folder.path / name, "");
    CHECK(refusal([&] { result_folder(folder.path, false); }) ==
          (folder.path / name).string() +
              ": this folder already holds a campaign; choose another with --out, or add --resume");
    CHECK_FALSE(fs::exists(folder.path / "lock"));
  }
  temporary_folder folder;
  write(folder.path / "notes.txt", "");
  CHECK(refusal([&] { result_folder(folder.path, false); }) == "");
}

TEST_CASE("a result without its records cannot be resumed, and stays as it is") {
  temporary_folder folder;
  write(folder.path / "result.json", "{}");
  CHECK(refusal([&] { result_folder(folder.path, true); }).find("records.jsonl: this file is missing") !=
        std::string::npos);
  CHECK(content_of(folder.path / "result.json") == "{}");
}

TEST_CASE("resuming removes what a killed process was writing, and nothing else") {
  temporary_folder folder;
  for (const char* name : {"result.json.0123456789abcdef.tmp", "resolved-1.toml.0123456789abcdef.tmp", "records.jsonl",
                           "notes.0123456789abcdef.tmp", "result.json.tmp", "result.json.old.tmp"})
    write(folder.path / name, "");
  const result_folder results(folder.path, true);
  CHECK_FALSE(fs::exists(folder.path / "result.json.0123456789abcdef.tmp"));
  CHECK_FALSE(fs::exists(folder.path / "resolved-1.toml.0123456789abcdef.tmp"));
  for (const char* kept : {"records.jsonl", "notes.0123456789abcdef.tmp", "result.json.tmp", "result.json.old.tmp"})
    CHECK_MESSAGE(fs::exists(folder.path / kept), kept);
}

TEST_CASE("a folder that another process writes is refused by its pid, and free once that process is gone") {
  temporary_folder folder;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const result_folder mine(folder.path, false);
    (void)!write(ready[1], "x", 1);
    for (;;) pause(); // until it is killed
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  const std::string expected = folder.path.string() + ": is being written by process " + std::to_string(child) +
                               "; choose another folder with --out";
  CHECK(refusal([&] { result_folder(folder.path, false); }) == expected);
  CHECK(refusal([&] { result_folder(folder.path, true); }) == expected);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  CHECK(fs::exists(folder.path / "lock")); // it had no time to remove it
  CHECK(refusal([&] { result_folder(folder.path, true); }) == "");
  CHECK_FALSE(fs::exists(folder.path / "lock"));
}

TEST_CASE("a new folder has a name that nobody has") {
  temporary_folder folder;
  const fs::path wanted = folder.path / "results" / "vgg-1";
  CHECK(result_folder::make_new(wanted) == wanted);
  CHECK(result_folder::make_new(wanted) == folder.path / "results" / "vgg-1-2");
  CHECK(result_folder::make_new(wanted) == folder.path / "results" / "vgg-1-3");
}
