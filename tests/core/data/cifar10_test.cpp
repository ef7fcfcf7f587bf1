// SPDX-License-Identifier: Apache-2.0
#include "data/generate_datasets.hpp"
#include "data/source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "data_fixture.hpp"

using namespace regatta;
using namespace data_fixture;

namespace {

constexpr std::size_t image = 3072;

data_config cifar10(const std::filesystem::path& path, bool shuffle = true) {
  data_config c;
  c.source = "dataset";
  c.format = "cifar10";
  c.path = c.evaluation_path = path.string();
  c.shuffle = shuffle;
  return c;
}

// Record r of such a file has label r mod 10, and pixels that count on from r.
std::string records(int first, int count) {
  std::string s;
  for (int r = first; r < first + count; ++r) {
    s += static_cast<char>(r % 10);
    for (std::size_t i = 0; i < image; ++i) s += static_cast<char>((static_cast<std::size_t>(r) + i) % 256);
  }
  return s;
}

const std::vector<rg_input> bytes_and_label{values("image", RG_U8, {3, 32, 32}), index("label", RG_I64, {}, 10)};
const std::vector<rg_input> image_and_label{values("image", RG_F32, {3, 32, 32}), index("label", RG_I32, {}, 10)};

} // namespace

TEST_CASE("records are read in the files' order, normalised per channel") {
  const temporary_folder folder;
  folder.write("data_batch_2.bin", records(5, 3));
  folder.write("data_batch_1.bin", records(0, 5));
  folder.write("test_batch.bin", records(100, 2));
  folder.write("readme.html", "no record");
  const std::vector<rg_input> inputs{index("label", RG_U8, {1}, 10), values("flat", RG_F32, {3072}),
                                     values("image", RG_U8, {3, 32, 32})};
  auto source = make_source(cifar10(folder.path, false), inputs, 1);
  CHECK(source->size() == 8);
  CHECK_FALSE(source->constant());
  const auto batch = fill(*source, inputs, 0, 10, 0, 10);
  const auto floats = batch.as<float>(1);
  constexpr double mean[] = {0.4914, 0.4822, 0.4465}, deviation[] = {0.2470, 0.2435, 0.2616};
  for (std::size_t k = 0; k < 10; ++k) {
    const std::size_t r = k % 8; // wraps around
    CHECK(batch.integer(0, k) == static_cast<std::int64_t>(r % 10));
    for (std::size_t i = 0; i < image; ++i) {
      const auto byte = (r + i) % 256;
      REQUIRE(batch.bytes[2][k * image + i] == byte);
      const double expected = (static_cast<double>(byte) / 255 - mean[i / 1024]) / deviation[i / 1024];
      REQUIRE(std::abs(static_cast<double>(floats[k * image + i]) - expected) < 1e-5);
    }
  }
  auto evaluation = make_evaluation_source(cifar10(folder.path), inputs, 1);
  CHECK(evaluation->size() == 2);
  CHECK(fill(*evaluation, inputs, 0, 2, 0, 2).bytes[2][0] == 100);
  // One file by its name, too.
  CHECK(make_source(cifar10(folder.path / "test_batch.bin"), inputs, 1)->size() == 2);
}

TEST_CASE("shuffled: every sample once an epoch, N workers as one, evaluation in order") {
  const temporary_folder folder;
  folder.write("data_batch_1.bin", records(0, 30));
  folder.write("data_batch_2.bin", records(30, 10));
  folder.write("test_batch.bin", records(0, 10));
  auto source = make_source(cifar10(folder.path), bytes_and_label, 7);
  std::vector<int> epochs[2];
  for (std::uint64_t step = 0; step < 10; ++step) { // 80 samples: two epochs, batches across their border
    const auto whole = fill(*source, bytes_and_label, step, 8, 0, 8);
    filled together(bytes_and_label, 0);
    for (std::uint64_t w = 0; w < 4; ++w) together.append(fill(*source, bytes_and_label, step, 8, 2 * w, 2));
    CHECK(together.bytes == whole.bytes);
    for (std::size_t k = 0; k < 8; ++k) epochs[(step * 8 + k) / 40].push_back(whole.bytes[0][k * image]);
  }
  CHECK(epochs[0] != epochs[1]);
  for (auto& epoch : epochs) {
    CHECK_FALSE(std::ranges::is_sorted(epoch));
    std::ranges::sort(epoch);
    for (int i = 0; i < 40; ++i) CHECK(epoch[static_cast<std::size_t>(i)] == i);
  }
  auto reseeded = make_source(cifar10(folder.path), bytes_and_label, 8);
  CHECK(fill(*reseeded, bytes_and_label, 0, 40, 0, 40).bytes != fill(*source, bytes_and_label, 0, 40, 0, 40).bytes);
  auto evaluation = make_evaluation_source(cifar10(folder.path), bytes_and_label, 7);
  for (std::uint64_t k = 0; k < 10; ++k) CHECK(fill(*evaluation, bytes_and_label, k, 1, 0, 1).bytes[0][0] == k);
}

TEST_CASE("errors in a folder or a file are reported with its name") {
  const temporary_folder folder;
  const auto refused = [&](exit_code code, const std::vector<rg_input>& inputs = image_and_label) {
    return failure_of([&] { make_source(cifar10(folder.path), inputs, 1); }, code);
  };
  CHECK(contains(refused(exit_code::usage), "holds no data_batch_*.bin"));
  CHECK(contains(refused(exit_code::usage), folder.path.string()));

  folder.write("data_batch_1.bin", "");
  CHECK(contains(refused(exit_code::run), "data_batch_1.bin: is empty"));
  folder.write("data_batch_1.bin", "x");
  CHECK(contains(refused(exit_code::run), "record 0 is truncated: 1 of 3073 bytes"));
  const auto whole = records(0, 3);
  folder.write("data_batch_1.bin", whole.substr(0, whole.size() - 1));
  CHECK(contains(refused(exit_code::run), "data_batch_1.bin: record 2 is truncated: 3072 of 3073 bytes"));
  auto mislabelled = whole;
  mislabelled[3073] = static_cast<char>(200);
  folder.write("data_batch_1.bin", mislabelled);
  CHECK(contains(refused(exit_code::run), "data_batch_1.bin: record 1 has label 200"));
  CHECK(contains(refused(exit_code::run), "\"label\" has 10 classes"));

  folder.write("data_batch_1.bin", whole);
  CHECK(contains(refused(exit_code::run, {index("label", RG_I32, {}, 2)}), "record 2 has label 2"));
  CHECK(contains(refused(exit_code::usage, {values("image", RG_F32, {3, 224, 224})}), "takes 3x224x224"));
  CHECK(contains(refused(exit_code::usage, {values("image", RG_F32, {32, 32, 3})}), "takes 32x32x3"));
  CHECK(contains(refused(exit_code::usage, {values("image", RG_I32, {3, 32, 32})}), "neither f32 nor u8"));
  CHECK(contains(refused(exit_code::usage, {index("words", RG_I32, {20}, 1000)}), "takes 20 indices"));
  CHECK(
      contains(failure_of([&] { make_evaluation_source(cifar10(folder.path), image_and_label, 1); }, exit_code::usage),
               "holds no test_batch*.bin"));

  std::filesystem::create_directory(folder.path / "data_batch_2.bin");
  CHECK(contains(refused(exit_code::usage), "data_batch_2.bin"));
  std::filesystem::remove(folder.path / "data_batch_2.bin");
  REQUIRE(::mkfifo((folder.path / "data_batch_3.bin").c_str(), 0600) == 0); // must not wait for a writer
  CHECK(contains(refused(exit_code::usage), "data_batch_3.bin: is not a regular file"));
}

TEST_CASE("the generated set reads back, is the same for the same seed, and has all classes") {
  const temporary_folder one, same, other;
  generate_cifar10_like(one.path / "deep" / "er", 40, 1);
  generate_cifar10_like(same.path, 40, 1);
  generate_cifar10_like(other.path, 40, 2);
  std::set<std::string> contents;
  for (const std::string name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                 "data_batch_5.bin", "test_batch.bin"}) {
    CHECK(one.read("deep/er/" + name) == same.read(name));
    CHECK(same.read(name) != other.read(name));
    CHECK(same.read(name).size() == 40 * 3073);
    contents.insert(same.read(name));
  }
  CHECK(contents.size() == 6);
  const auto names = same.read("batches.meta.txt");
  CHECK(std::ranges::count(names, '\n') == 10);

  auto source = make_source(cifar10(same.path), image_and_label, 1);
  CHECK(source->size() == 200);
  const auto batch = fill(*source, image_and_label, 0, 200, 0, 200);
  std::set<std::int64_t> labels;
  for (std::size_t k = 0; k < 200; ++k) labels.insert(batch.integer(1, k));
  CHECK(labels.size() == 10);
  for (const float v : batch.as<float>(0)) REQUIRE(std::abs(v) < 3);

  const auto blocker = one.write("file", "");
  CHECK(contains(failure_of([&] { generate_cifar10_like(blocker, 1, 1); }, exit_code::run), "file"));
}

TEST_CASE("the generated set can be learnt: the nearest mean of a class beats chance, but is not perfect") {
  const temporary_folder folder;
  generate_cifar10_like(folder.path, 400, 1);
  auto train = make_source(cifar10(folder.path), image_and_label, 1);
  auto test = make_evaluation_source(cifar10(folder.path), image_and_label, 1);
  const auto seen = fill(*train, image_and_label, 0, 2000, 0, 2000);
  const auto x = seen.as<float>(0);
  std::vector<double> means(10 * image, 0.0);
  std::array<double, 10> counts{};
  for (std::size_t k = 0; k < 2000; ++k) {
    const auto label = static_cast<std::size_t>(seen.integer(1, k));
    counts[label] += 1;
    for (std::size_t i = 0; i < image; ++i) means[label * image + i] += static_cast<double>(x[k * image + i]);
  }
  for (std::size_t c = 0; c < 10; ++c)
    for (std::size_t i = 0; i < image; ++i) means[c * image + i] /= counts[c];

  const auto unseen = fill(*test, image_and_label, 0, 400, 0, 400);
  const auto y = unseen.as<float>(0);
  int right = 0;
  for (std::size_t k = 0; k < 400; ++k) {
    std::array<double, 10> distance{};
    for (std::size_t c = 0; c < 10; ++c)
      for (std::size_t i = 0; i < image; ++i)
        distance[c] += std::pow(means[c * image + i] - static_cast<double>(y[k * image + i]), 2);
    right += std::ranges::min_element(distance) - distance.begin() == unseen.integer(1, k);
  }
  CHECK(right > 100); // chance: 40
  CHECK(right < 300);
}

TEST_CASE("a check of the data reads no more records than it asks for") {
  const temporary_folder folder;
  folder.write("data_batch_1.bin", records(0, 5));
  folder.write("data_batch_2.bin", records(5, 5));
  data_config config = cifar10(folder.path, false);
  for (const std::uint64_t first : {3, 7}) {
    config.first_records = first;
    CHECK(make_source(config, bytes_and_label, 1)->size() == first);
  }
}
