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
  virtual std::uint64_t size() const noexcept = 0; // number of ids, the special ones included; all ids are below it
  // [any, several threads at once] Appends the ids of a line to `ids`. An unknown word becomes id_unknown; it is left
  // out if id_unknown is not among the special ids.
  virtual void encode(std::string_view line, std::vector<std::uint32_t>& ids) const = 0;
  // [any] Returns by id how often it occurs in the text, 0 for special ids; empty if not counted. Valid as long as this
  // object.
  virtual std::span<const std::uint64_t> counts() const noexcept { return {}; }
};

// [main] Returns the vocabulary that `config` describes. data.tokens = "words": words between blanks that occur at
// least min_count times, the most frequent first, at most `most` ids, of which the first `specials` are reserved.
// "subwords": a model of sentencepiece (unigram, Kudo 2018), always with the five special ids. Reads the file
// data.vocabulary, or builds one from `texts` beside the first of them, unless it is there and the texts are unchanged.
// Words of a data.vocabulary stay in its order, and min_count is ignored. With config.first_records and no
// data.vocabulary: all words of the texts, at most `most` ids, without a file, also for "subwords". `texts` has at
// least one element; the result keeps no reference to it. Throws failure: usage if there are no words, data.vocabulary
// is a file of words that cannot be read, or a model with other special ids or more than `most` pieces, or this build
// has no subwords; run if a file is damaged or a model cannot be read, trained or written. A file of words that cannot
// be written is no error.
std::unique_ptr<vocabulary> open_vocabulary(const data_config& config, const std::vector<const text_file*>& texts,
                                            std::uint64_t most, std::uint32_t specials);

// [main] open_vocabulary() for data.tokens = "subwords". `given`: the file is the user's, used as it is; else it is a
// cache of `texts`, which is rebuilt if it is missing or the texts have changed.
std::unique_ptr<vocabulary> open_subwords(const std::filesystem::path& model, bool given,
                                          const std::vector<const text_file*>& texts, std::uint64_t most);

} // namespace regatta
