// SPDX-License-Identifier: Apache-2.0
#include "report/data_fingerprint.hpp"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "json.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

struct data_folder : test::temporary_folder {
  json of(const std::string& format) const { return fingerprint_of_data(path.string(), format); }
};

} // namespace

TEST_CASE("a data set is known by its names, sizes and contents, not by its times or what runs write beside it") {
  const data_folder d;
  d.write("a.txt", "one two\n");
  d.write("b.txt", "three\n");
  const json before = d.of("words");
  CHECK(before["files"] == 2);
  CHECK(before["bytes"] == 14);
  CHECK(before["sha256"].get<std::string>().size() == 64);
  std::filesystem::last_write_time(d.path / "a.txt", std::filesystem::file_time_type{});
  d.write("a.txt.1.vocabulary", "made by a run");
  d.write("r/result.json", "{}");
  CHECK(d.of("words") == before);
  d.write("b.txt", "threE\n"); // as long as before
  CHECK(d.of("words")["sha256"] != before["sha256"]);
  d.write("b.txt", "three\n");
  CHECK(d.of("words") == before);
  std::filesystem::rename(d.path / "b.txt", d.path / "c.txt");
  CHECK(d.of("words")["sha256"] != before["sha256"]);
  CHECK(d.of("npy")["files"] == 0);
  CHECK(fingerprint_of_data((d.path / "a.txt").string(), "words")["bytes"] == 8);
  CHECK(fingerprint_of_data((d.path / "none").string(), "words")["sha256"].is_null());
}

TEST_CASE("of the images of a data set those in the folders of classes count") {
  const data_folder d;
  d.write("cat/1.jpg", "x");
  d.write("dog/2.jpg", "y");
  d.write("notes.txt", "z");
  const json before = d.of("imagenet");
  CHECK(before["files"] == 2);
  d.write("dog/2.jpg", "Y");
  CHECK(d.of("imagenet")["sha256"] != before["sha256"]);
}

TEST_CASE("of large data excerpts are read, the first and the last bytes among them") {
  const data_folder d;
  d.write("x.bin", "");
  const auto file = d.path / "x.bin";
  std::filesystem::resize_file(file, 100 << 20); // a hole: it takes no room
  const json before = d.of("cifar10");
  for (const std::streamoff at : {0, (100 << 20) - 1}) {
    std::fstream(file, std::ios::in | std::ios::out).seekp(at).put('x');
    CHECK(d.of("cifar10")["sha256"] != before["sha256"]);
    std::fstream(file, std::ios::in | std::ios::out).seekp(at).put('\0');
    CHECK(d.of("cifar10") == before);
  }
}
