// SPDX-License-Identifier: Apache-2.0
#include "data/vocabulary.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "files/write_atomically.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

#if REGATTA_SENTENCEPIECE
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace regatta {
namespace {

void check(const sentencepiece::util::Status& status, const std::filesystem::path& of) {
  if (!status.ok()) throw failure(exit_code::run, fmt::format("{}: {}", of.string(), status.ToString()));
}

class text_lines final : public sentencepiece::SentenceIterator {
public:
  explicit text_lines(const std::vector<const text_file*>& texts) : texts_(texts) { settle(); }
  bool done() const override { return text_ == texts_.size(); }
  void Next() override {
    ++line_;
    settle();
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

private:
  void settle() {
    while (text_ < texts_.size() && line_ >= texts_[text_]->lines()) {
      ++text_;
      line_ = 0;
    }
    if (!done()) value_ = texts_[text_]->line(line_);
  }
  const std::vector<const text_file*>& texts_;
  std::size_t text_ = 0;
  std::uint64_t line_ = 0;
  std::string value_;
};

class subwords final : public vocabulary {
public:
  subwords(const std::filesystem::path& model, std::uint64_t most) {
    if (const auto status = processor_.Load(model.string()); !status.ok())
      throw failure(exit_code::run, fmt::format("{}: cannot be read as a model of sentencepiece ({})", model.string(),
                                                one_line(status.ToString())));
    if (processor_.pad_id() != id_pad || processor_.unk_id() != id_unknown || processor_.bos_id() != id_begin ||
        processor_.eos_id() != id_end || processor_.PieceToId("[MASK]") != id_mask || !processor_.IsControl(id_mask))
      throw failure(exit_code::usage,
                    fmt::format("{}: its special ids are not 0 padding, 1 unknown, 2 begin, 3 end, 4 [MASK]; train it "
                                "with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3 --control_symbols=[MASK]",
                                model.string()));
    if (size() > most)
      throw failure(exit_code::usage,
                    fmt::format("{}: has {} pieces, the model's vocabulary {}", model.string(), size(), most));
  }
  std::uint64_t size() const noexcept override { return static_cast<std::uint64_t>(processor_.GetPieceSize()); }
  void encode(std::string_view line, std::vector<std::uint32_t>& ids) const override {
    std::vector<int> pieces;
    check(processor_.Encode({line.data(), line.size()}, &pieces), "sentencepiece");
    for (const int p : pieces) ids.push_back(static_cast<std::uint32_t>(p));
  }

private:
  sentencepiece::SentencePieceProcessor processor_;
};

// All ranks may do this at the same time.
void train(const std::filesystem::path& model, const std::vector<const text_file*>& texts, std::uint64_t most) {
  text_lines lines(texts);
  sentencepiece::SetRandomGeneratorSeed(1); // so that all ranks train the same model
  std::string bytes;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      fmt::format("--vocab_size={} --hard_vocab_limit=false --pad_id={} --unk_id={} --bos_id={} --eos_id={} "
                  "--control_symbols=[MASK] --num_threads=1 --minloglevel=2 --character_coverage=0.9995 "
                  "--input_sentence_size=1000000 --shuffle_input_sentence=true",
                  most, std::uint32_t{id_pad}, std::uint32_t{id_unknown}, std::uint32_t{id_begin},
                  std::uint32_t{id_end}),
      &lines, &bytes);
  if (!status.ok())
    throw failure(exit_code::run, fmt::format("{}: expected text for {} subwords, as many as the model has rows for "
                                              "words: {}",
                                              texts.front()->path().string(), most, one_line(status.ToString())));
  try {
    write_atomically(model, bytes);
  } catch (const failure& e) {
    throw failure(exit_code::run, fmt::format("{}; name another file with data.vocabulary", e.what()));
  }
}

// Identifies the texts that a model was trained on; kept in a file beside the model.
std::string state_of(const std::vector<const text_file*>& texts) {
  std::string state;
  for (const text_file* t : texts) state += t->state();
  return state;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace

std::unique_ptr<vocabulary> open_subwords(const std::filesystem::path& model, bool given,
                                          const std::vector<const text_file*>& texts, std::uint64_t most) {
  const std::filesystem::path state = model.string() + ".made_of.subwords";
  if (!given && (!std::filesystem::exists(model) || text_of(state) != state_of(texts))) {
    train(model, texts, most);
    try {
      write_atomically(state, state_of(texts));
    } catch (const failure&) { // without that file the model is trained again
    }
  }
  return std::make_unique<subwords>(model, most);
}

} // namespace regatta

#else

namespace regatta {

std::unique_ptr<vocabulary> open_subwords(const std::filesystem::path&, bool, const std::vector<const text_file*>&,
                                          std::uint64_t) {
  throw failure(exit_code::usage, "data.tokens: this build has no \"subwords\": install libsentencepiece-dev and build "
                                  "again, or use \"words\"");
}

} // namespace regatta
#endif
