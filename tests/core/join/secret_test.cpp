// SPDX-License-Identifier: Apache-2.0
#include "join/secret.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/failure.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using regatta::test::temporary_folder;
namespace fs = std::filesystem;

namespace {

const std::string secret = "0123456789abcdef0123456789abcdef";

struct secret_file {
  explicit secret_file(const std::string& text, mode_t mode = 0600, const fs::path& parent = fs::temp_directory_path())
      : folder(parent), path((folder.path / "secret").string()) {
    std::ofstream(path, std::ios::binary) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  }
  temporary_folder folder;
  std::string path;
};

std::string refusal_of(const std::string& path) {
  try {
    read_secret(path);
    return "";
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::usage);
    return e.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool on_tmpfs(const fs::path& path) {
  struct statfs s {};
  return ::statfs(path.c_str(), &s) == 0 && s.f_type == TMPFS_MAGIC;
}

} // namespace

TEST_CASE("a secret is the same with and without newlines at its end, and differs with its text") {
  const digest d = read_secret(secret_file(secret).path);
  CHECK(d == read_secret(secret_file(secret + "\n").path));
  CHECK(d == read_secret(secret_file(secret + "\r\n").path));
  CHECK(d != read_secret(secret_file(secret + " ").path));
  CHECK(d != read_secret(secret_file(std::string(32, '\0')).path)); // any bytes
}

TEST_CASE("a secret that is missing, empty, short or long is refused by its file's name") {
  const secret_file missing(secret), empty("\n"), is_short(secret.substr(1) + "\n"), is_long(std::string(4097, 'x'));
  fs::remove(missing.path);
  for (const auto& [path, why] :
       {std::pair(missing.path, "No such file"), std::pair(empty.path, "empty"), std::pair(is_short.path, "got 31"),
        std::pair(is_long.path, "got more"), std::pair(empty.folder.path.string(), "expected a file")}) {
    const std::string text = refusal_of(path);
    CHECK_MESSAGE(contains(text, "REGATTA_SECRET_FILE=" + path), text);
    CHECK_MESSAGE(contains(text, why), text);
    CHECK_FALSE(contains(text, secret.substr(1)));
  }
  CHECK(refusal_of(secret_file(std::string(4096, 'x') + "\n").path).empty());
}

TEST_CASE("a secret that others can read or change is refused") {
  for (const mode_t mode : {0604, 0644, 0660, 0602, 0620})
    CHECK(contains(refusal_of(secret_file(secret, mode).path), "chmod 600"));
  CHECK(refusal_of(secret_file(secret, 0400).path).empty());
}

TEST_CASE("the group may read a secret where Kubernetes mounts it, on a tmpfs") {
  const secret_file here(secret, 0440);
  CHECK(refusal_of(here.path).empty() == on_tmpfs(here.path));
  if (!on_tmpfs("/dev/shm")) return;
  CHECK(refusal_of(secret_file(secret, 0440, "/dev/shm").path).empty());
  CHECK(contains(refusal_of(secret_file(secret, 0444, "/dev/shm").path), "0444"));
  CHECK(contains(refusal_of(secret_file(secret, 0460, "/dev/shm").path), "0460"));
}

TEST_CASE("a secret may be a link, as Kubernetes mounts it") {
  const secret_file file(secret);
  const fs::path link = file.folder.path / "link";
  fs::create_symlink("secret", link);
  CHECK(read_secret(link.string()) == read_secret(file.path));
}
