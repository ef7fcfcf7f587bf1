// SPDX-License-Identifier: Apache-2.0
#include "data/vocabulary.hpp"

#include "base/failure.hpp"
#include "experiment/experiment.hpp"
#include "files/write_atomically.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

struct counted_word {
  std::string word;
  std::uint64_t count;
};

// Returns the first line of a vocabulary file, which identifies its texts. Lines "WORD COUNT" follow, frequent words
// first.
std::string head_of(const std::vector<const text_file*>& texts, std::uint64_t min_count) {
  std::string head = fmt::format("regatta-vocabulary 1 min_count={}", min_count);
  for (const text_file* t : texts) head += " " + t->state();
  return head;
}

std::vector<counted_word> count_words(const std::vector<const text_file*>& texts, std::uint64_t min_count) {
  std::unordered_map<std::string_view, std::uint64_t> counts;
  for (const text_file* t : texts)
    for (std::uint64_t i = 0; i < t->lines(); ++i)
      each_word(t->line(i), [&](std::string_view word) { ++counts[word]; });
  std::vector<counted_word> words;
  for (const auto& [word, count] : counts)
    if (count >= min_count) words.push_back({std::string(word), count});
  std::ranges::sort(
      words, [](const auto& a, const auto& b) { return a.count != b.count ? a.count > b.count : a.word < b.word; });
  return words;
}

// Returns std::nullopt if the file is missing or was made from other texts. An empty `head` accepts any texts.
std::optional<std::vector<counted_word>> read_words(const std::filesystem::path& path, const std::string& head) {
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!in || !std::getline(in, line) || (!head.empty() && line != head)) return {};
  std::vector<counted_word> words;
  const bool headed = line.starts_with("regatta-vocabulary ");
  std::uint64_t number = headed ? 2 : 1;
  for (bool more = !headed || std::getline(in, line); more; more = bool(std::getline(in, line)), ++number) {
    const std::size_t space = std::min(line.find(' '), line.size());
    counted_word w{line.substr(0, space), 0};
    const std::string_view count = std::string_view(line).substr(std::min(space + 1, line.size()));
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), w.count);
    if (space == 0 || error != std::errc() || end != count.data() + count.size())
      throw failure(exit_code::run, fmt::format("{}:{}: expected a word and its count", path.string(), number));
    words.push_back(std::move(w));
  }
  return words;
}

// All ranks may do this at the same time: the file appears complete or not at all. It is only a cache, so failing is no
// error.
void keep_words(const std::filesystem::path& path, const std::string& head, const std::vector<counted_word>& words) {
  std::string text = head + '\n';
  for (const counted_word& w : words) text += fmt::format("{} {}\n", w.word, w.count);
  try {
    write_atomically(path, text);
  } catch (const failure&) { // the folder may not be writable
  }
}

class words final : public vocabulary {
public:
  words(const std::vector<counted_word>& all, std::uint64_t most, std::uint32_t specials) : specials_(specials) {
    counts_.resize(specials, 0);
    for (const counted_word& w : all) {
      if (counts_.size() >= most) break;
      ids_.emplace(w.word, static_cast<std::uint32_t>(counts_.size()));
      counts_.push_back(w.count);
    }
  }
  std::uint64_t size() const noexcept override { return counts_.size(); }
  void encode(std::string_view line, std::vector<std::uint32_t>& ids) const override {
    each_word(line, [&](std::string_view word) {
      if (const auto found = ids_.find(word); found != ids_.end())
        ids.push_back(found->second);
      else if (specials_ > id_unknown)
        ids.push_back(id_unknown);
    });
  }
  std::span<const std::uint64_t> counts() const noexcept override { return counts_; }

private:
  struct hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::uint32_t specials_;
  std::unordered_map<std::string, std::uint32_t, hash, std::equal_to<>> ids_;
  std::vector<std::uint64_t> counts_; // by id
};

// `given`: the file is the user's, used as it is; else it is a cache of `texts`, which is rebuilt if it is missing or
// the texts have changed. A cache that cannot be written is no error.
std::unique_ptr<vocabulary> open_words(const std::filesystem::path& cache, bool given, std::uint64_t min_count,
                                       const std::vector<const text_file*>& texts, std::uint64_t most,
                                       std::uint32_t specials) {
  const std::string head = given ? "" : head_of(texts, min_count);
  auto all = read_words(cache, head);
  if (!all && given) throw failure(exit_code::usage, fmt::format("data.vocabulary: {} cannot be read", cache.string()));
  if (!all) {
    all = count_words(texts, min_count);
    keep_words(cache, head, *all);
  }
  if (all->empty())
    throw failure(
        exit_code::usage,
        fmt::format(
            "{}: {}", texts.front()->path().string(),
            min_count > 1
                ? fmt::format("expected words that occur {} times (data.min_count), got none: lower it", min_count)
                : "holds no words"));
  return std::make_unique<words>(*all, most, specials);
}

} // namespace

std::unique_ptr<vocabulary> open_vocabulary(const data_config& config, const std::vector<const text_file*>& texts,
                                            std::uint64_t most, std::uint32_t specials) {
  const bool given = !config.vocabulary.empty();
  const auto beside = [&](const std::string& extension) {
    return given ? std::filesystem::path(config.vocabulary)
                 : std::filesystem::path(texts.front()->path().string() + extension);
  };
  if (config.first_records && !given) {
    auto all = count_words(texts, 1);
    if (all.empty()) throw failure(exit_code::usage, fmt::format("{}: holds no words", texts.front()->path().string()));
    return std::make_unique<words>(all, most, specials);
  }
  if (config.tokens == "subwords") return open_subwords(beside(fmt::format(".{}.subwords", most)), given, texts, most);
  const auto min_count = static_cast<std::uint64_t>(config.min_count);
  return open_words(beside(fmt::format(".{}.vocabulary", min_count)), given, min_count, texts, most, specials);
}

} // namespace regatta
