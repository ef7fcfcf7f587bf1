// SPDX-License-Identifier: Apache-2.0
//
// The format sentences: pairs of sentences with masked words.
#include "data_fixture.hpp"

#include "data/generate_datasets.hpp"

#include <cmath>

using namespace data_fixture;
using namespace regatta;

TEST_CASE("sentences: pairs, segments, 15 % targets of which four in five are masked") {
  const temporary_folder f;
  generate_sentences_like(f.path, 200, 1);
  const data_config c = dataset("sentences", f.path / "train.txt");
  const std::vector<rg_input>& inputs = inputs_of("sentences");
  const auto source = open(c, inputs);
  const filled data = all(*source, inputs);
  std::uint64_t words = 0, targets = 0, masks = 0, kept = 0, next = 0;
  for (std::uint64_t s = 0; s < source->size(); ++s) {
    const auto token = [&](std::uint64_t i) { return data.integer(0, s * 24 + i); };
    REQUIRE(token(0) == 2);
    std::uint64_t ends = 0;
    for (std::uint64_t i = 0; i < 24; ++i) {
      CHECK(data.integer(1, s * 24 + i) == (ends == 1 && token(i) != 0 ? 1 : 0));
      ends += token(i) == 3;
      words += token(i) > 3 || token(i) == 1;
    }
    REQUIRE(ends == 2);
    for (std::uint64_t t = 0; t < 5; ++t) {
      const std::int64_t original = data.integer(3, s * 5 + t), at = data.integer(2, s * 5 + t);
      if (!original) continue;
      CHECK(original > 4);
      ++targets;
      masks += token(static_cast<std::uint64_t>(at)) == 4;
      kept += token(static_cast<std::uint64_t>(at)) == original;
    }
    next += static_cast<std::uint64_t>(data.integer(4, s));
  }
  const auto share = [](std::uint64_t part, std::uint64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  CHECK(share(targets, words) == doctest::Approx(0.15).epsilon(0.1));
  CHECK(share(masks, targets) == doctest::Approx(0.8).epsilon(0.05));
  CHECK(share(kept, targets) == doctest::Approx(0.1).epsilon(0.2));
  CHECK(share(next, source->size()) == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("sentences: half of the pairs follow each other, the others are of two documents") {
  const temporary_folder f;
  // Every sentence is one unique word. Documents have one to five sentences.
  std::string text;
  std::vector<std::uint64_t> document_of;
  for (std::uint64_t d = 0; d < 60; ++d) {
    for (std::uint64_t s = 0; s < 1 + d % 5; ++s) {
      text += "w" + std::to_string(document_of.size()) + "\n";
      document_of.push_back(d);
    }
    text += "\n";
  }
  std::string vocabulary;
  for (std::size_t w = 0; w < document_of.size(); ++w) vocabulary += "w" + std::to_string(w) + " 1\n";
  f.write("train.txt", text);
  data_config c = dataset("sentences", f.path / "train.txt");
  c.vocabulary = f.write("words", vocabulary).string();
  c.shuffle = false;
  const std::vector<rg_input> inputs{index("tokens", RG_I32, {5}, 500), index("masked_labels", RG_I32, {1}, 500),
                                     index("masked_positions", RG_I32, {1}, 5), index("next_sentence", RG_I32, {}, 2)};
  const auto source = open(c, inputs);
  const std::uint64_t pairs = document_of.size() - 60; // the last sentence of a document is never the first of a pair
  REQUIRE(source->size() == pairs);
  std::uint64_t follow = 0, samples = 0;
  for (std::uint64_t step = 0; step < 40; ++step) {
    const filled data = fill(*source, inputs, step, pairs, 0, pairs);
    for (std::uint64_t s = 0; s < pairs; ++s, ++samples) {
      std::vector<std::int64_t> tokens;
      for (std::uint64_t i = 0; i < 5; ++i) tokens.push_back(data.integer(0, s * 5 + i));
      REQUIRE(tokens[2] == 3); // [begin] A [end] B [end]
      REQUIRE(tokens[4] == 3);
      const std::int64_t hidden = data.integer(1, s);
      if (hidden) tokens[static_cast<std::size_t>(data.integer(2, s))] = hidden;
      const auto a = static_cast<std::uint64_t>(tokens[1] - 5), b = static_cast<std::uint64_t>(tokens[3] - 5);
      const bool next = data.integer(3, s);
      follow += next;
      if (next)
        REQUIRE(b == a + 1);
      else
        REQUIRE(document_of[a] != document_of[b]);
      REQUIRE(document_of[a] == document_of[a + 1]);
    }
  }
  CHECK(samples == 40 * 120);
  // Four standard deviations of as many fair coins.
  CHECK(std::abs(static_cast<double>(follow) - 0.5 * static_cast<double>(samples)) <
        2 * std::sqrt(static_cast<double>(samples)));
}

TEST_CASE("sentences: of one document the follower is never drawn by chance; without pairs there is nothing to read") {
  const temporary_folder f;
  f.write("train.txt", "a\nb\nc\n");
  data_config c = dataset("sentences", f.path / "train.txt");
  c.vocabulary = f.write("words", "a 1\nb 1\nc 1\n").string();
  c.shuffle = false;
  const std::vector<rg_input> inputs{index("tokens", RG_I32, {5}, 500), index("masked_labels", RG_I32, {1}, 500),
                                     index("masked_positions", RG_I32, {1}, 5), index("next_sentence", RG_I32, {}, 2)};
  const auto source = open(c, inputs);
  REQUIRE(source->size() == 2);
  const filled data = fill(*source, inputs, 0, 200, 0, 200);
  std::uint64_t others = 0;
  for (std::uint64_t s = 0; s < 200; ++s) {
    if (data.integer(3, s)) continue;
    ++others;
    std::vector<std::int64_t> tokens;
    for (std::uint64_t i = 0; i < 5; ++i) tokens.push_back(data.integer(0, s * 5 + i));
    if (const std::int64_t hidden = data.integer(1, s)) tokens[static_cast<std::size_t>(data.integer(2, s))] = hidden;
    CHECK(tokens[3] != tokens[1] + 1);
  }
  CHECK(others > 50);
  f.write("train.txt", "a\n\nb\n\nc\n");
  CHECK(contains(failure_of([&] { open(c, inputs); }, exit_code::run), "a document of two sentences at least"));
}
