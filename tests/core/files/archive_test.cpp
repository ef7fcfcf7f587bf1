// SPDX-License-Identifier: Apache-2.0
#include "files/archive.hpp"

#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/failure.hpp"
#include "files/gzip.hpp"
#include "temporary_folder.hpp"

using namespace regatta;

namespace {

const std::vector<archived_file> some = {
    {"b/deep/file.txt", std::string(1000, 'x')}, {"a.txt", "hello\n"}, {"empty", ""}};

std::string zipped(const std::string& tar) {
  gzip_writer out;
  out.add(tar);
  return out.finish();
}

// Returns the archive of one file with other bytes in its header, and with the sum that belongs to them.
std::string with_header(std::size_t at, const std::string& bytes, bool right_sum = true) {
  std::string tar = gunzip(write_archive({{"name", "content"}}), 1 << 20);
  tar.replace(at, bytes.size(), bytes);
  if (right_sum) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
    tar.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  }
  return zipped(tar);
}

std::string why_refused(const std::string& bytes) {
  try {
    read_archive(bytes);
  } catch (const failure& f) {
    CHECK(f.code() == exit_code::usage);
    return f.what();
  }
  return "";
}

bool is(const std::vector<archived_file>& a, const std::vector<archived_file>& b) {
  return std::ranges::equal(a, b,
                            [](const auto& x, const auto& y) { return x.name == y.name && x.content == y.content; });
}

} // namespace

TEST_CASE("files come back sorted, and equal files give equal bytes") {
  const std::string bytes = write_archive(some);
  CHECK(is(read_archive(bytes), {some[1], some[0], some[2]}));
  CHECK(write_archive({some[2], some[0], some[1]}) == bytes);
  CHECK(read_archive(write_archive({})).empty());
  const std::string deep = std::string(120, 'd') + "/" + std::string(90, 'f'); // needs the prefix of ustar
  CHECK(read_archive(write_archive({{deep, "x"}})).at(0).name == deep);
  CHECK_THROWS_AS(write_archive({{std::string(130, 'f'), "x"}}), failure);
}

TEST_CASE("tar reads an archive, and an archive of tar is read") {
  const test::temporary_folder folder;
  folder.write("x.tar.gz", write_archive(some));
  const std::string in = "cd " + folder.path.string() + " && ";
  if (std::system("tar --version >/dev/null 2>&1") != 0) return;
  REQUIRE(std::system((in + "mkdir out && tar xzf x.tar.gz -C out").c_str()) == 0);
  CHECK(folder.read("out/b/deep/file.txt") == some[0].content);
  REQUIRE(std::system((in + "tar czf y.tar.gz --format=ustar -C out a.txt b empty").c_str()) == 0);
  CHECK(is(read_archive(folder.read("y.tar.gz")), {some[1], some[0], some[2]})); // tar wrote the folder b, too
}

TEST_CASE("names that lead out of the folder, or that are none") {
  for (const char* name :
       {"", ".", "..", "../x", "a/../x", "/etc/passwd", "a//b", "a/", "./a", "a\\b", "a\nb", "\xff"}) {
    CAPTURE(name);
    CHECK_FALSE(is_archive_name(name));
    CHECK_THROWS_AS(write_archive({{name, ""}}), failure);
  }
  CHECK(is_archive_name("a..b/...c"));
  CHECK(why_refused(with_header(0, std::string("../x") + '\0')).find("below the archive's folder, got \"../x\"") !=
        std::string::npos);
  CHECK(why_refused(with_header(0, std::string("/x") + '\0')).find("got \"/x\"") != std::string::npos);
  CHECK(why_refused(with_header(345, "..")).find("got \"../name\"") != std::string::npos); // by the prefix
  CHECK_THROWS_AS(write_archive({{"a", ""}, {"a", ""}}), failure);
  CHECK_THROWS_AS(write_archive({{"a", ""}, {"a/b", ""}}), failure);
}

TEST_CASE("links, devices and damage are refused") {
  CHECK(why_refused(with_header(0, "N")) == "");
  for (const char* type : {"1", "2", "3", "4", "6", "x", "L"})
    CHECK(why_refused(with_header(156, type)).find(fmt::format("an entry of type '{}'", type)) != std::string::npos);
  CHECK(why_refused(with_header(0, "N", false)).find("correct checksums") != std::string::npos);
  CHECK(why_refused(with_header(257, "xstar")).find("ustar") != std::string::npos);
  CHECK(why_refused(with_header(124, "77777777777")).find("ends within a file") != std::string::npos); // 8 GiB
  CHECK(why_refused(with_header(124, "0000000000x")).find("ustar") != std::string::npos);
  const std::string tar = gunzip(write_archive(some), 1 << 20), bytes = write_archive(some);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{600}, tar.size() - 1024})
    CHECK(why_refused(zipped(tar.substr(0, size))).find("ends within a file") != std::string::npos);
  CHECK(why_refused(bytes.substr(0, bytes.size() - 9)).find("gzip") != std::string::npos);
  CHECK(why_refused("no archive").find("gzip") != std::string::npos);
  const std::string twice = tar.substr(0, 1024) + tar;
  CHECK(why_refused(zipped(twice)) == "expected each file once, got a.txt twice");
}

TEST_CASE("unpacking replaces nothing and follows no link") {
  const test::temporary_folder folder, other;
  std::filesystem::create_directory(folder.path / "new");
  unpack_archive(some, folder.path / "new");
  CHECK(folder.read("new/b/deep/file.txt") == some[0].content);
  CHECK_THROWS_AS(unpack_archive(some, folder.path / "new"), failure);
  CHECK(folder.read("new/a.txt") == "hello\n");
  std::filesystem::create_directory(folder.path / "linked");
  std::filesystem::create_symlink(other.path / "target", folder.path / "linked/a.txt");
  CHECK_THROWS_AS(unpack_archive({some[1]}, folder.path / "linked"), failure);
  CHECK_FALSE(std::filesystem::exists(other.path / "target"));
}
