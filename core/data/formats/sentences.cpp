// SPDX-License-Identifier: Apache-2.0
//
// Plain text for masked language models (Devlin et al., "BERT", 2019, section 3.1 and appendix A.1): a line is a
// sentence; an empty line ends a document.
//
// A sample is a sentence A that has a successor in its document, and a second sentence B. Half of the time B is that
// successor; otherwise it is a random sentence of another document (if there is only one document, any sentence but the
// successor). They become [begin] A [end] B [end] and padding; the longer sentence is cut first. 15 % of their tokens
// are targets: 80 % of these become the mask, 10 % a random token, and 10 % stay. A sentence is always one line; lines
// are not joined to fill a sample, as BERT's own preparation does.
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/vocabulary.hpp"
#include "experiment/experiment.hpp"

#include <algorithm>
#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

class sentences final : public dataset_format {
  static constexpr const char* name = "sentences";

public:
  sentences(const std::vector<data_input>& inputs, const data_config& config, const std::filesystem::path& path)
      : text_(path, config.first_records) {
    std::uint64_t range = std::numeric_limits<std::uint32_t>::max();
    for (const data_input& input : inputs) {
      if (input.name == "next_sentence") {
        require_scalar(input, name);
        continue;
      }
      require_indices(input, name);
      if (input.name == "tokens" || input.name == "masked_labels") range = std::min(range, input.range);
      if (input.name == "tokens") length_ = input.elements;
      if (input.name == "masked_positions" || input.name == "masked_labels") {
        if (targets_ && targets_ != input.elements)
          throw failure(exit_code::usage,
                        "the model's inputs \"masked_positions\" and \"masked_labels\" are not of one length");
        targets_ = input.elements;
      } else if (input.name != "tokens" && input.name != "segments") {
        refuse_input(input, name, "tokens, segments, masked_positions, masked_labels and next_sentence");
      }
    }
    if (length_ < 5) throw failure(exit_code::usage, "format \"sentences\" needs an input \"tokens\" of 5 at least");
    for (const data_input& input : inputs)
      if ((input.name == "segments" && (input.elements != length_ || input.range < 2)) ||
          (input.name == "masked_positions" && input.range < length_))
        throw failure(
            exit_code::usage,
            fmt::format("the model's input \"{}\" does not fit its \"tokens\", which are {}", input.name, length_));
    for (std::uint64_t i = 0; i < text_.lines(); ++i) {
      if (blank(i)) continue;
      const bool follows = !lines_.empty() && lines_.back() + 1 == i;
      if (follows) firsts_.push_back(lines_.size() - 1);
      if (!follows) documents_.push_back(lines_.size());
      lines_.push_back(i);
    }
    if (firsts_.empty())
      throw failure(exit_code::run,
                    fmt::format("{}: expected a document of two sentences at least, got none: a line is a "
                                "sentence, and an empty line ends a document",
                                path.string()));
    if (path == config.path) {
      vocabulary_ = open_vocabulary(config, {&text_}, range, id_mask + 1);
    } else {
      const text_file training(config.path, config.first_records);
      vocabulary_ = open_vocabulary(config, {&training}, range, id_mask + 1);
    }
    if (vocabulary_->size() <= id_mask + 1)
      throw failure(exit_code::usage, fmt::format("{}: the vocabulary holds no words", config.path));
  }

  std::uint64_t size() const noexcept override { return firsts_.size(); }

  void read(std::uint64_t index, std::uint64_t draw, std::span<const sample_slot> out) const override {
    const rg::bits4 bits = rg::random_bits(draw, 0);
    const std::uint64_t first = firsts_[index];
    const bool next = bits[0] >> 31;
    const std::uint64_t other = next ? first + 1 : stranger(first, bits[1]);
    std::vector<std::uint32_t> a, b;
    vocabulary_->encode(text_.line(lines_[first]), a);
    vocabulary_->encode(text_.line(lines_[other]), b);
    while (a.size() + b.size() > length_ - 3) (a.size() > b.size() ? a : b).pop_back();

    std::vector<std::uint32_t> tokens{id_begin}, segments, positions, masked;
    tokens.insert(tokens.end(), a.begin(), a.end());
    tokens.push_back(id_end);
    segments.assign(tokens.size(), 0);
    tokens.insert(tokens.end(), b.begin(), b.end());
    tokens.push_back(id_end);
    segments.resize(tokens.size(), 1);
    mask(draw, tokens, positions, masked);
    for (const sample_slot& slot : out) {
      const std::string& input = slot.input->name;
      if (input == "next_sentence")
        slot.index(0, next);
      else
        slot.indices(input == "tokens"             ? tokens
                     : input == "segments"         ? segments
                     : input == "masked_positions" ? positions
                                                   : masked);
    }
  }

private:
  bool blank(std::uint64_t i) const noexcept {
    return text_.line(i).find_first_not_of(" \t") == std::string_view::npos;
  }

  // Returns a random sentence outside the document of `first`; in a single document, any sentence but the successor.
  std::uint64_t stranger(std::uint64_t first, std::uint32_t bits) const {
    const auto after = std::ranges::upper_bound(documents_, first);
    std::uint64_t begin = *(after - 1), end = after == documents_.end() ? lines_.size() : *after;
    if (documents_.size() == 1) {
      begin = first + 1;
      end = first + 2;
    }
    const std::uint64_t drawn = rg::to_index(bits, static_cast<std::uint32_t>(lines_.size() - (end - begin)));
    return drawn < begin ? drawn : drawn + (end - begin);
  }

  // Selects positions in one pass without a list: each is taken with the probability (targets still wanted) /
  // (positions left).
  void mask(std::uint64_t draw, std::vector<std::uint32_t>& tokens, std::vector<std::uint32_t>& positions,
            std::vector<std::uint32_t>& masked) const {
    std::uint64_t left = 0;
    for (const std::uint32_t t : tokens) left += t > id_mask || t == id_unknown;
    std::uint64_t wanted = std::min({targets_, std::max<std::uint64_t>(1, (left * 15 + 50) / 100), left});
    const auto size = static_cast<std::uint32_t>(vocabulary_->size());
    for (std::uint32_t i = 0; i < tokens.size() && wanted > 0; ++i) {
      const std::uint32_t original = tokens[i];
      if (original <= id_mask && original != id_unknown) continue;
      const rg::bits4 bits = rg::random_bits(draw, 1 + i);
      if (rg::to_index(bits[0], static_cast<std::uint32_t>(left--)) >= wanted) continue;
      --wanted;
      positions.push_back(i);
      masked.push_back(original);
      const std::uint32_t tenth = rg::to_index(bits[1], 10);
      if (tenth < 8)
        tokens[i] = id_mask;
      else if (tenth == 8)
        tokens[i] = id_mask + 1 + rg::to_index(bits[2], size - id_mask - 1);
    }
  }

  text_file text_;
  std::vector<std::uint64_t> lines_;     // lines that are not empty: the sentences
  std::vector<std::uint64_t> firsts_;    // sentences with a successor in their document
  std::vector<std::uint64_t> documents_; // first sentence of each document
  std::unique_ptr<vocabulary> vocabulary_;
  std::uint64_t length_ = 0, targets_ = 0;
};

} // namespace

std::unique_ptr<dataset_format> make_sentences(const std::vector<data_input>& inputs, const data_config& config,
                                               const std::filesystem::path& path) {
  return std::make_unique<sentences>(inputs, config, path);
}

} // namespace regatta
