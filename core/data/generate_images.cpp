// SPDX-License-Identifier: Apache-2.0
#include "data/generate_datasets.hpp"

#include "data/jpeg.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <ostream>

#include <fmt/format.h>

#include <regatta/random.hpp>

namespace regatta {
namespace {

image paint(std::uint32_t label, std::uint32_t labels, std::uint32_t height, std::uint64_t seed) {
  const auto own = rg::random_uniforms(0x696d67, label); // the colour of the class, the same for every seed
  const auto draw = rg::random_uniforms(seed, 0);
  // Up to half as wide again, because real images have all proportions.
  image p{height + static_cast<std::uint32_t>(static_cast<float>(height) * 0.5F * draw[2]), height, {}};
  p.pixels.resize(std::size_t{3} * p.width * p.height);
  const double angle = std::numbers::pi * label / labels, phase = 2 * std::numbers::pi * static_cast<double>(draw[0]);
  const double turn = 12 * std::numbers::pi / height;
  std::size_t at = 0;
  for (std::uint32_t y = 0; y < p.height; ++y)
    for (std::uint32_t x = 0; x < p.width; ++x) {
      const double stripe = std::sin(phase + turn * (x * std::cos(angle) + y * std::sin(angle)));
      const auto noise = rg::random_uniforms(seed, at, 1);
      for (std::size_t c = 0; c < 3; ++c) {
        const double value = 128 + 60 * stripe + 40 * (static_cast<double>(own[c]) - 0.5) +
                             40 * (static_cast<double>(draw[1]) - 0.5) + 60 * (static_cast<double>(noise[c]) - 0.5);
        p.pixels[at++] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  return p;
}

} // namespace

void generate_imagenet_like(const std::filesystem::path& dir, std::uint32_t classes, std::uint32_t images,
                            std::uint32_t side, std::uint64_t seed) {
  for (std::uint32_t label = 0; label < classes; ++label)
    for (const std::uint32_t test : {0, 1}) {
      const auto folder = dir / (test ? "test" : "train") / fmt::format("class{:03}", label);
      for (std::uint32_t i = 0; i < (test ? std::max(1U, images / 5) : images); ++i) {
        const auto bytes = encode_jpeg(paint(label, classes, side, rg::derive_seed(seed, i, label, test)), 85);
        write_file(folder / fmt::format("{:05}.jpg", i), [&](std::ostream& out) {
          out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        });
      }
    }
}

} // namespace regatta
