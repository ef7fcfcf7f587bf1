// SPDX-License-Identifier: Apache-2.0
//
// Generates images that a network can learn. Every class has a texture: stripes of one direction and width with a
// random phase. Its mean over samples is flat, so a linear model cannot detect it, but one layer of small filters can.
// Every class also has a faint smooth colouring, which a linear model can find. Samples are shifted, mirrored,
// brightened and noisy, like photographs.
#include "data/generate_datasets.hpp"

#include "data/normal_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <ostream>
#include <vector>

#include <fmt/core.h>

#include <regatta/random.hpp>

namespace regatta {
namespace {

constexpr int classes = 10, side = 32, channels = 3;
constexpr std::size_t record = 1 + channels * side * side;
constexpr float pi = std::numbers::pi_v<float>;

// Purposes of a sample's random numbers.
enum : std::uint32_t { use_shape = 0, use_noise = 1 };

using waves = std::array<std::array<std::array<float, side>, side>, channels>; // [channel][row][column]

// Returns the faint colouring of a class: a few slow waves per channel, with a period of the image's side, so that it
// can be shifted cyclically.
waves make_colouring(int label) {
  waves p{};
  for (int c = 0; c < channels; ++c)
    for (int wave = 0; wave < 4; ++wave) {
      const auto r = rg::random_uniforms(0x63696661, static_cast<std::uint64_t>(label), static_cast<std::uint32_t>(c),
                                         static_cast<std::uint32_t>(wave));
      const int fx = wave % 2, fy = wave / 2; // waves across the image
      for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x)
          p[c][y][x] += (2 * r[0] - 1) * std::cos(2 * pi * (fx * x + fy * y) / float{side} + 2 * pi * r[1]);
    }
  return p;
}

class painter {
public:
  painter() {
    for (int label = 0; label < classes; ++label) colourings_[label] = make_colouring(label);
    for (std::size_t i = 0; i < sines_.size(); ++i)
      sines_[i] = static_cast<float>(std::sin(2 * std::numbers::pi * static_cast<double>(i) / sines_.size()));
  }

  // Writes one record: the label, then the image.
  void paint(std::uint64_t seed, std::uint8_t* out) const {
    const auto bits = rg::random_bits(seed, 0, use_shape);
    const auto label = static_cast<int>(rg::to_index(bits[0], classes));
    *out++ = static_cast<std::uint8_t>(label);
    const bool mirrored = bits[1] & 1;
    const int dx = static_cast<int>(bits[1] >> 1 & 7) - 4, dy = static_cast<int>(bits[1] >> 4 & 7) - 4;
    const auto jitter = rg::random_uniforms(seed, 1, use_shape);
    const float brightness = 128 + 50 * (jitter[0] - 0.5F);
    const float strength = stripes * (0.6F + 0.8F * jitter[1]); // contrast of the stripes
    const float tint = 0.5F + jitter[2];                        // weight of the stripes per channel
    const auto [turn_x, turn_y] = stripe_turns(label);
    const auto other = rg::to_index(bits[3], classes);
    const float others_share = 2 * jitter[3];

    std::uint64_t block = 0;
    for (int c = 0; c < channels; ++c) {
      const float contrast = strength * (c == 0 ? tint : c == 1 ? 1 : 2 - tint);
      for (int y = 0; y < side; ++y) {
        const int row = (y + dy + side) % side;
        const std::uint32_t row_turn = bits[2] + turn_y * static_cast<std::uint32_t>(y);
        const auto& own = colourings_[label][c][row];
        const auto& others = colourings_[other][c][row];
        for (int x = 0; x < side; x += 8) {
          const auto noises = normals_.eight(rg::random_bits(seed, block++, use_noise));
          for (int i = 0; i < 8; ++i) {
            const int at = mirrored ? side - 1 - (x + i) : x + i, column = (at + dx + side) % side;
            const float colour = colouring * (own[column] + others_share * others[column]);
            const float stripe = sines_[(row_turn + turn_x * static_cast<std::uint32_t>(at)) >> 22];
            const float value = brightness + colour + contrast * stripe + noise * noises[i];
            *out++ = static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
          }
        }
      }
    }
  }

private:
  static constexpr float stripes = 32, colouring = 7, noise = 28; // amplitudes in units of a pixel's 256 values

  // Returns how far the stripes advance per pixel along x and y, in units of 2^-32 turns, which wrap around by
  // overflow. The classes have five directions, none the mirror image of another, and two widths.
  static std::array<std::uint32_t, 2> stripe_turns(int label) {
    const double angle = std::numbers::pi / 8 * (label % 5);
    const double turns = (label < 5 ? 0.1 : 0.2) * 0x1p32;
    return {static_cast<std::uint32_t>(turns * std::cos(angle)), static_cast<std::uint32_t>(turns * std::sin(angle))};
  }

  std::array<float, 1024> sines_;
  std::array<waves, classes> colourings_;
  normal_table normals_;
};

} // namespace

void generate_cifar10_like(const std::filesystem::path& dir, std::uint64_t samples_per_file, std::uint64_t seed) {
  const painter p;
  std::vector<std::uint8_t> records(samples_per_file * record);
  for (std::uint32_t file = 0; file < 6; ++file) {
    for (std::uint64_t k = 0; k < samples_per_file; ++k)
      p.paint(rg::derive_seed(seed, k, file, rg::stream_data), records.data() + k * record);
    write_file(dir / (file < 5 ? fmt::format("data_batch_{}.bin", file + 1) : "test_batch.bin"),
               [&](std::ostream& out) {
                 out.write(reinterpret_cast<const char*>(records.data()), static_cast<std::streamsize>(records.size()));
               });
  }
  write_file(dir / "batches.meta.txt", [](std::ostream& out) {
    for (int label = 0; label < classes; ++label)
      out << fmt::format("{}_stripes_{}\n", label < 5 ? "wide" : "narrow", label % 5 * 45 / 2);
  });
}

} // namespace regatta
