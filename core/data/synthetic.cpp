// SPDX-License-Identifier: Apache-2.0
//
// Generated input: each value is a function of (seed, step, sample, input).
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/normal_table.hpp"
#include "data/zipf.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <regatta/plugin.hpp>
#include <regatta/random.hpp>

namespace regatta {
namespace {

// The random bits of one sample of one input, in blocks.
struct bit_stream {
  std::uint64_t seed, sample;
  rg::bits4 block(std::uint64_t k) const noexcept {
    return rg::random_bits(seed, sample, static_cast<std::uint32_t>(k), rg::stream_data);
  }
};

// Calls make(bits) for every block and copies its N values, the last ones as far as there is room.
template <std::size_t N, class T, class F> void fill_blocks(T* out, std::uint64_t count, bit_stream bits, F make) {
  std::uint64_t done = 0, k = 0;
  for (; done + N <= count; done += N) {
    const std::array<T, N> values = make(bits.block(k++));
    std::memcpy(out + done, values.data(), sizeof values);
  }
  if (done < count) {
    const std::array<T, N> values = make(bits.block(k));
    std::memcpy(out + done, values.data(), (count - done) * sizeof(T));
  }
}

template <class T> void fill_indices(T* out, const data_input& input, bit_stream bits) {
  // The upper half of a 128-bit product: uniform over any range, without a division.
  const auto index = [range = input.range](std::uint32_t low, std::uint32_t high) {
    __extension__ using wide = unsigned __int128;
    return static_cast<T>(static_cast<wide>(std::uint64_t{high} << 32 | low) * range >> 64);
  };
  fill_blocks<2, T>(out, input.elements, bits, [&](const rg::bits4& b) {
    return std::array<T, 2>{index(b[0], b[1]), index(b[2], b[3])};
  });
}

// Ranges from here on are vocabularies; smaller ones are classes.
constexpr std::uint64_t words_from = 4096;

class synthetic_source final : public data_source {
public:
  synthetic_source(std::vector<data_input> inputs, std::string_view content, double exponent, bool constant,
                   std::uint64_t seed)
      : inputs_(std::move(inputs)), zeros_(content == "zeros"), constant_(constant), exponent_(exponent), seed_(seed) {
    if (content == "normal")
      normals_.emplace();
    else if (!zeros_ && content != "uniform")
      throw failure(exit_code::usage,
                    fmt::format("data.content: expected zeros, uniform or normal, got \"{}\"", content));
    for (const auto& input : inputs_) {
      zipfs_.emplace_back();
      if (input.kind == RG_INPUT_INDEX && input.range >= words_from && exponent > 0)
        zipfs_.back().emplace(input.range, exponent);
      if (input.kind == RG_INPUT_VALUES && !zeros_ && input.type != RG_F32 && input.type != RG_U8)
        throw failure(exit_code::usage, fmt::format("the model's input \"{}\" holds integers that are no index: "
                                                    "data.content = \"{}\" cannot make them, \"zeros\" can",
                                                    input.name, content));
    }
  }

  void fill(std::uint64_t step, std::uint64_t, std::uint64_t first, std::uint64_t samples,
            std::span<void* const> out) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::uint64_t seed = seed_of(step, i);
      for (std::uint64_t k = 0; k < samples; ++k) fill_sample(i, {seed, first + k}, out[i], k);
    }
  }

  bool constant() const noexcept override { return constant_; }

  std::vector<double> frequencies(std::size_t input) const override {
    if (inputs_[input].kind != RG_INPUT_INDEX) return {};
    std::vector<double> weights(inputs_[input].range, 1.0);
    if (zipfs_[input])
      for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = std::pow(static_cast<double>(k + 1), -exponent_);
    return weights;
  }

private:
  std::uint64_t seed_of(std::uint64_t step, std::size_t input) const noexcept {
    return rg::derive_seed(seed_, constant_ ? 0 : step, static_cast<std::uint32_t>(input), rg::stream_data);
  }

  // Fills sample k of the buffer `out`.
  void fill_sample(std::size_t i, bit_stream bits, void* out, std::uint64_t k) const {
    const data_input& input = inputs_[i];
    if (zipfs_[i]) {
      const sample_slot slot{&input, static_cast<std::uint8_t*>(out) + k * input.elements * rg::size_of(input.type)};
      for (std::uint64_t e = 0; e < input.elements; ++e)
        slot.index(e, zipfs_[i]->at(bits.seed, bits.sample * input.elements + e));
      return;
    }
    switch (input.type) {
    case RG_F32: return fill_values(static_cast<float*>(out) + k * input.elements, input.elements, bits);
    case RG_U8: return fill_typed(static_cast<std::uint8_t*>(out) + k * input.elements, input, bits);
    case RG_I32: return fill_typed(static_cast<std::int32_t*>(out) + k * input.elements, input, bits);
    default: return fill_typed(static_cast<std::int64_t*>(out) + k * input.elements, input, bits);
    }
  }

  template <class T> void fill_typed(T* out, const data_input& input, bit_stream bits) const {
    if (input.kind == RG_INPUT_INDEX)
      fill_indices(out, input, bits);
    else
      fill_values(out, input.elements, bits);
  }

  void fill_values(float* out, std::uint64_t count, bit_stream bits) const {
    if (zeros_)
      std::fill_n(out, count, 0.0F);
    else if (normals_)
      fill_blocks<8, float>(out, count, bits, [&](const rg::bits4& b) { return normals_->eight(b); });
    else
      fill_blocks<4, float>(out, count, bits, [](const rg::bits4& b) {
        return std::array{rg::to_uniform(b[0]), rg::to_uniform(b[1]), rg::to_uniform(b[2]), rg::to_uniform(b[3])};
      });
  }

  void fill_values(std::uint8_t* out, std::uint64_t count, bit_stream bits) const {
    if (zeros_)
      std::fill_n(out, count, std::uint8_t{0});
    else if (normals_)
      fill_blocks<8, std::uint8_t>(out, count, bits, [&](const rg::bits4& b) {
        std::array<std::uint8_t, 8> bytes;
        std::ranges::transform(normals_->eight(b), bytes.begin(), [](float z) {
          return static_cast<std::uint8_t>(std::clamp(128.5F + 64 * z, 0.0F, 255.0F));
        });
        return bytes;
      });
    else
      fill_blocks<16, std::uint8_t>(out, count, bits,
                                    [](const rg::bits4& b) { return std::bit_cast<std::array<std::uint8_t, 16>>(b); });
  }

  // Integers that are no indices: the constructor accepts only zeros for them.
  template <class T> void fill_values(T* out, std::uint64_t count, bit_stream) const { std::fill_n(out, count, T{0}); }

  std::vector<data_input> inputs_;
  bool zeros_, constant_;
  double exponent_; // for indices of large ranges
  std::uint64_t seed_;
  std::optional<normal_table> normals_;
  std::vector<std::optional<zipf>> zipfs_; // by input
};

} // namespace

std::unique_ptr<data_source> make_synthetic(std::vector<data_input> inputs, std::string_view content, double zipf,
                                            bool constant, std::uint64_t seed) {
  return std::make_unique<synthetic_source>(std::move(inputs), content, zipf, constant, seed);
}

} // namespace regatta
