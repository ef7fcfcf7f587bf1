// SPDX-License-Identifier: Apache-2.0
//
// The format imagenet, and the JPEG decoder.
#include "data_fixture.hpp"

#include "data/generate_datasets.hpp"
#include "data/jpeg.hpp"

#include <cmath>
#include <map>
#include <sys/resource.h>

using namespace data_fixture;
using namespace regatta;

#if REGATTA_JPEG
TEST_CASE("a small file that claims to be a huge image is refused before memory is taken for it") {
  const image p{32, 32, std::vector<std::uint8_t>(std::size_t{3} * 32 * 32, 100)};
  auto bytes = encode_jpeg(p, 90);
  const std::uint8_t start_of_frame[] = {0xff, 0xc0};
  const auto at = std::ranges::search(bytes, start_of_frame).begin();
  REQUIRE(at + 9 < bytes.end());
  for (const std::uint8_t kind : {0xc0, 0xc2}) { // baseline and progressive
    at[1] = kind;
    for (int i = 0; i < 4; ++i) at[5 + i] = i % 2 ? 0xe8 : 0xfd; // 65000 x 65000
    image out;
    std::string why;
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    CHECK_FALSE(decode_jpeg(bytes, 32, out, why));
    getrusage(RUSAGE_SELF, &after);
    CHECK(contains(why, "claims 65000 x 65000 pixels"));
    CHECK(after.ru_maxrss - before.ru_maxrss < 16 << 10); // KiB; 12 GB were asked for
    CHECK(out.pixels.empty());
  }
}

TEST_CASE("imagenet: classes by folder, crops of the right size, damaged and unknown ones named") {
  const temporary_folder f;
  generate_imagenet_like(f.path, 3, 5, 64, 1);
  data_config c = dataset("imagenet", f.path / "train");
  c.evaluation_path = (f.path / "test").string();
  const std::vector<rg_input> inputs{values("image", RG_F32, {3, 32, 32}), index("label", RG_I32, {}, 1000)};
  const auto source = open(c, inputs);
  CHECK(source->size() == 15);
  const filled data = all(*source, inputs);
  std::map<std::int32_t, int> labels;
  for (const std::int32_t l : data.as<std::int32_t>(1)) ++labels[l];
  CHECK(labels == std::map<std::int32_t, int>{{0, 5}, {1, 5}, {2, 5}});
  double sum = 0;
  for (const float v : data.as<float>(0)) sum += static_cast<double>(v);
  CHECK(std::abs(sum / (15 * 3072)) < 0.7); // about normalised
  CHECK(fill(*source, inputs, 1, 15, 0, 15).bytes != data.bytes);

  // The centre of an image of one colour has that colour at every size; bytes are not normalised.
  image p{50, 40, std::vector<std::uint8_t>(std::size_t{3} * 50 * 40, 0)};
  for (std::size_t i = 0; i < p.pixels.size(); i += 3) p.pixels[i] = 200;
  const auto bytes = encode_jpeg(p, 95);
  std::filesystem::create_directories(f.path / "one/class000");
  f.write("one/class000/x.JPG", std::string(bytes.begin(), bytes.end()));
  c.evaluation_path = (f.path / "one").string();
  const std::vector<rg_input> raw{values("image", RG_U8, {3, 32, 32})};
  const auto pixels = all(*make_evaluation_source(c, raw, 1), raw).as<std::uint8_t>(0);
  CHECK(std::abs(pixels[0] - 200) < 4);
  CHECK(pixels[1024 * 2] < 4);

  f.write("train/class001/00002.jpg", std::string(bytes.begin(), bytes.begin() + 400)); // cut off
  const auto damaged = open(c, inputs);
  CHECK(contains(failure_of([&] { all(*damaged, inputs); }, exit_code::run), "class001/00002.jpg"));
  c.on_bad_record = "skip";
  c.threads = 2;
  const auto skipping = open(c, inputs);
  all(*skipping, inputs);
  CHECK(skipping->skipped() == 1);
  std::filesystem::create_directories(f.path / "one/dragon");
  CHECK(contains(failure_of([&] { make_evaluation_source(c, inputs, 1); }, exit_code::usage), "dragon"));
  CHECK(contains(failure_of([&] { open(c, {index("label", RG_I32, {}, 2)}); }, exit_code::usage), "3 classes"));
}
#endif
