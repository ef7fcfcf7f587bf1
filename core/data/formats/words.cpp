// SPDX-License-Identifier: Apache-2.0
//
// Plain text as pairs of neighbouring words, for skip-grams (Mikolov et al., "Distributed representations of words and
// phrases and their compositionality", 2013). A line is a sentence; words are separated by spaces.
//
// word2vec.c walks through the text. Here each sample is drawn independently, so that any rank can generate any sample:
// a position in the text, and another word at most `window` away in its line. Distance d has the weight window - d + 1,
// because a window of random size from 1 to `window` reaches it that often. Other words are drawn if the line is too
// short, or with the probability that subsampling drops one of the two (section 2.3). On average pairs are as frequent
// as in word2vec.c, with one difference: word2vec.c removes dropped words before it lays windows. An epoch has as many
// samples as the text has words.
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/vocabulary.hpp"
#include "experiment/experiment.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

constexpr std::uint32_t line_end = std::numeric_limits<std::uint32_t>::max();

class words_format final : public dataset_format {
  static constexpr const char* name = "words";

public:
  words_format(const std::vector<data_input>& inputs, const data_config& config, const std::filesystem::path& path)
      : window_(static_cast<std::uint32_t>(config.window)) {
    std::uint64_t range = std::numeric_limits<std::uint32_t>::max();
    for (const data_input& input : inputs) {
      if (input.name != "word" && input.name != "context") refuse_input(input, name, "word and context");
      require_scalar(input, name);
      range = std::min(range, input.range);
    }
    const text_file text(config.path, config.first_records);
    data_config words = config;
    words.tokens = "words";
    const auto vocabulary = open_vocabulary(words, {&text}, range, 0);
    path == config.path ? encode(text, *vocabulary) : encode(text_file(path, config.first_records), *vocabulary);
    counts_.assign(vocabulary->counts().begin(), vocabulary->counts().end());
    keep(config.subsample);
  }

  std::uint64_t size() const noexcept override { return words_; }
  // Counted before subsampling, as in word2vec.c.
  std::vector<double> frequencies(const data_input&) const override { return counts_; }

  void read(std::uint64_t, std::uint64_t draw, std::span<const sample_slot> out) const override {
    for (std::uint32_t tried = 0; tried < most_tries; ++tried) {
      const rg::bits4 bits = rg::random_bits(draw, tried);
      const std::uint64_t at = 1 + rg::to_index(bits[3], static_cast<std::uint32_t>(text_.size() - 2));
      if (text_[at] == line_end) continue;
      const std::uint64_t other = neighbour(at, bits[0]);
      if (other == at || rg::to_uniform(bits[1]) >= keep_[text_[at]] || rg::to_uniform(bits[2]) >= keep_[text_[other]])
        continue;
      for (const sample_slot& slot : out) slot.index(0, text_[slot.input->name == "word" ? at : other]);
      return;
    }
    throw failure(
        exit_code::run,
        fmt::format("data.path: no pair of neighbours in {} draws: its lines have one word, or data.subsample "
                    "drops nearly all: raise it",
                    most_tries));
  }

private:
  static constexpr std::uint32_t most_tries = 100'000;

  void encode(const text_file& text, const vocabulary& v) {
    text_.push_back(line_end); // at both ends, so that neighbour() needs no bounds check
    for (std::uint64_t i = 0; i < text.lines(); ++i) {
      v.encode(text.line(i), text_);
      if (text_.back() != line_end) text_.push_back(line_end);
    }
    std::uint64_t lines = 0;
    for (const std::uint32_t id : text_) lines += id == line_end;
    words_ = text_.size() - lines;
    if (words_ < 2) throw failure(exit_code::run, fmt::format("{}: holds no words", text.path().string()));
    if (text_.size() > line_end / 2)
      throw failure(exit_code::usage, fmt::format("{}: more than 2^31 words", text.path().string()));
  }

  // Mikolov et al.'s sqrt(t / f), in the form of word2vec.c: (sqrt(f / t) + 1) * t / f.
  void keep(double subsample) {
    const double total = std::accumulate(counts_.begin(), counts_.end(), 0.0);
    for (const double c : counts_) {
      const double f = c / total / subsample;
      keep_.push_back(subsample > 0 ? static_cast<float>(std::min(1.0, (std::sqrt(f) + 1) / f)) : 1);
    }
  }

  // Returns a random neighbour of `at`, or `at` itself if the line ends too soon.
  std::uint64_t neighbour(std::uint64_t at, std::uint32_t bits) const noexcept {
    const std::uint32_t weights = window_ * (window_ + 1) / 2;
    std::uint32_t place = rg::to_index(bits, 2 * weights), distance = 1;
    const bool left = place >= weights;
    if (left) place -= weights;
    for (; place >= window_ - distance + 1; ++distance) place -= window_ - distance + 1;
    std::uint64_t other = at;
    for (; distance > 0; --distance)
      if (text_[left ? --other : ++other] == line_end) return at;
    return other;
  }

  std::uint32_t window_;
  std::vector<std::uint32_t> text_; // ids, with line_end between lines
  std::vector<double> counts_;      // of the training text, by id
  std::vector<float> keep_;         // probability to keep a word, by id
  std::uint64_t words_ = 0;
};

} // namespace

std::unique_ptr<dataset_format> make_words(const std::vector<data_input>& inputs, const data_config& config,
                                           const std::filesystem::path& path) {
  return std::make_unique<words_format>(inputs, config, path);
}

} // namespace regatta
