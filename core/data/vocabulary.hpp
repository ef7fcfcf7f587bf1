// SPDX-License-Identifier: Apache-2.0
//
// Converts text to token ids. A vocabulary is built from the training text and kept in a file beside it, which is
// rebuilt when the text has changed; or the user provides the file.
#pragma once

#include "data/text_file.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

struct data_config;

// Ids with special meanings, in formats that need them.
enum special_id : std::uint32_t { id_pad = 0, id_unknown = 1, id_begin = 2, id_end = 3, id_mask = 4 };

class vocabulary {
public:
  virtual ~vocabulary() = default;
  virtual std::uint64_t size() const noexcept = 0; // all ids are below it
  // [any, several threads at once] Appends the ids of a line. An unknown word becomes id_unknown, or nothing if there
  // are no special ids.
  virtual void encode(std::string_view line, std::vector<std::uint32_t>& ids) const = 0;
  // Returns how often each id occurs in the text; empty if not counted.
  virtual std::span<const std::uint64_t> counts() const noexcept { return {}; }
};

// Returns the vocabulary that `config` describes. data.tokens = "words": words between spaces that occur at least
// min_count times, the most frequent first, at most `most` ids, of which the first `specials` are reserved. "subwords":
// a model of sentencepiece (unigram, Kudo 2018), always with the five special ids. The file is data.vocabulary, or lies
// beside the first text. With config.first_records and no data.vocabulary: words of the texts, without a file. Throws
// failure.
std::unique_ptr<vocabulary> open_vocabulary(const data_config& config, const std::vector<const text_file*>& texts,
                                            std::uint64_t most, std::uint32_t specials);

std::unique_ptr<vocabulary> open_words(const std::filesystem::path& cache, bool given, std::uint64_t min_count,
                                       const std::vector<const text_file*>& texts, std::uint64_t most,
                                       std::uint32_t specials);
std::unique_ptr<vocabulary> open_subwords(const std::filesystem::path& model, bool given,
                                          const std::vector<const text_file*>& texts, std::uint64_t most);

} // namespace regatta
