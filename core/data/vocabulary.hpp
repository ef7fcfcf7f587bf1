// SPDX-License-Identifier: Apache-2.0
//
// From text to numbers. A vocabulary is made of the training text, kept in a file beside it, and made again when the
// text has changed; or it is given.
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

// Ids that mean no word, where a format wants them.
enum special_id : std::uint32_t { id_pad = 0, id_unknown = 1, id_begin = 2, id_end = 3, id_mask = 4 };

class vocabulary {
public:
  virtual ~vocabulary() = default;
  virtual std::uint64_t size() const noexcept = 0; // ids are below it
  // Appends the line's ids. A word that is not known becomes id_unknown, or nothing where there are no special ids.
  // [any, several threads at once]
  virtual void encode(std::string_view line, std::vector<std::uint32_t>& ids) const = 0;
  // How often the text has each id; empty where it was not counted.
  virtual std::span<const std::uint64_t> counts() const noexcept { return {}; }
};

// The vocabulary that `config` asks for: data.tokens = "words", split at spaces, those that come min_count times at
// least, the frequent ones first, at most `most` ids with the first `specials` of them kept free; or "subwords" of
// sentencepiece (a unigram model, Kudo 2018), always with the five special ids. data.vocabulary: its file, else beside
// the first text. With config.first_records, where the file is not there yet: one of words of the texts, which is not
// kept. Throws failure.
std::unique_ptr<vocabulary> open_vocabulary(const data_config& config, const std::vector<const text_file*>& texts,
                                            std::uint64_t most, std::uint32_t specials);

std::unique_ptr<vocabulary> open_words(const std::filesystem::path& cache, bool given, std::uint64_t min_count,
                                       const std::vector<const text_file*>& texts, std::uint64_t most,
                                       std::uint32_t specials);
std::unique_ptr<vocabulary> open_subwords(const std::filesystem::path& model, bool given,
                                          const std::vector<const text_file*>& texts, std::uint64_t most);

} // namespace regatta
