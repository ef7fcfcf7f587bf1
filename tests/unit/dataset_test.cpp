// SPDX-License-Identifier: Apache-2.0
//
// The formats that are read a sample at a time, on data of our own making and on damaged files; threads and queues.
#include "data_fixture.hpp"

#include "data/data_generators.hpp"
#include "data/generate_datasets.hpp"
#include "data/jpeg.hpp"
#include "data/thread_pool.hpp"
#include "data/zipf.hpp"

#include <atomic>
#include <cmath>
#include <map>
#include <set>

#include <sys/resource.h>
#include <unistd.h>

#if REGATTA_SENTENCEPIECE
#include <sentencepiece_trainer.h>
#endif

using namespace data_fixture;
using namespace regatta;

namespace {

data_config dataset(const char* format, const std::filesystem::path& path) {
  data_config c;
  c.source = "dataset";
  c.format = format;
  c.path = path.string();
  return c;
}

std::unique_ptr<data_source> open(const data_config& c, const std::vector<rg_input>& inputs) {
  return make_source(c, inputs, 1);
}

// All samples of the first epoch.
filled all(data_source& source, const std::vector<rg_input>& inputs) {
  return fill(source, inputs, 0, source.size(), 0, source.size());
}

const std::string line_tail = std::string(13, '\t') + std::string(26, '\t'); // after a label: all missing

} // namespace

TEST_CASE("any share of a batch is the same samples, on any number of threads, behind a queue or not") {
  const temporary_folder f;
  generate_criteo_like(f.path(), 100, 1);
  generate_words_like(f.path() / "words", 50, 3, 1);
  generate_sentences_like(f.path() / "sentences", 20, 1);
  generate_parallel_like(f.path() / "parallel", 60, 1);
  generate_queries_like(f.path() / "queries", 60, 1);
  struct one {
    const char *format, *path;
    std::vector<rg_input> inputs;
  };
  const std::vector<one> formats = {
      {"criteo",
       "train.tsv",
       {index("label", RG_I32, {}, 2), values("features", RG_F32, {13}), index("ids", RG_I64, {26}, 1000)}},
      {"words", "words/train.txt", {index("word", RG_I32, {}, 300), index("context", RG_I32, {}, 300)}},
      {"sentences",
       "sentences/train.txt",
       {index("tokens", RG_I32, {24}, 500), index("segments", RG_I32, {24}, 2),
        index("masked_positions", RG_I32, {4}, 24), index("masked_labels", RG_I32, {4}, 500),
        index("next_sentence", RG_I32, {}, 2)}},
      {"parallel",
       "parallel/train",
       {index("source", RG_I32, {12}, 100), index("target_in", RG_I32, {12}, 100),
        index("target_out", RG_I32, {12}, 100)}},
      {"queries",
       "queries/train.tsv",
       {index("query", RG_I32, {8}, 2000), index("positive", RG_I32, {8}, 2000),
        index("negative", RG_I32, {8}, 2000)}}};
  for (const one& o : formats) {
    CAPTURE(o.format);
    data_config c = dataset(o.format, f.path() / o.path);
    const auto source = open(c, o.inputs);
    const filled whole = fill(*source, o.inputs, 3, 24, 0, 24);
    filled parts = fill(*source, o.inputs, 3, 24, 0, 8);
    parts.append(fill(*source, o.inputs, 3, 24, 8, 16));
    CHECK(parts.bytes == whole.bytes);
    CHECK(fill(*source, o.inputs, 4, 24, 0, 24).bytes != whole.bytes);
    for (std::size_t i = 0; i < o.inputs.size(); ++i)
      if (o.inputs[i].kind == RG_INPUT_INDEX)
        for (std::size_t e = 0; e < whole.as<std::uint8_t>(i).size() / rg::size_of(o.inputs[i].type); ++e)
          REQUIRE((whole.integer(i, e) >= 0 && whole.integer(i, e) < o.inputs[i].range));
    c.threads = 3;
    CHECK(fill(*open(c, o.inputs), o.inputs, 3, 24, 0, 24).bytes == whole.bytes);
    c.source = "queue";
    c.queue_source = "dataset";
    c.prefetch = 2;
    const auto queue = open(c, o.inputs);
    queue->plan({24, 8, 4, 2}); // micro-batches of 4 from place 8 on
    for (std::uint64_t step = 0; step < 4; ++step)
      for (std::uint64_t m = 0; m < 2; ++m)
        CHECK(fill(*queue, o.inputs, step, 24, 8 + 4 * m, 4).bytes ==
              fill(*source, o.inputs, step, 24, 8 + 4 * m, 4).bytes);
    CHECK(contains(failure_of([&] { fill(*queue, o.inputs, 9, 24, 8, 4); }, exit_code::plugin), "step 9"));
    open(c, o.inputs)->plan({24, 0, 4, 1}); // a producer that nobody asks ends all the same
  }
}

TEST_CASE("a queue hands on what its source fails with") {
  const temporary_folder f;
  data_config c = dataset("criteo", f.write("x.tsv", "1" + line_tail + "\n2" + line_tail + "\n"));
  c.source = "queue";
  c.queue_source = "dataset";
  const std::vector<rg_input> inputs{index("label", RG_I32, {}, 2)};
  const auto queue = open(c, inputs);
  queue->plan({4, 0, 4, 1});
  CHECK(contains(failure_of([&] { fill(*queue, inputs, 0, 4, 0, 4); }, exit_code::run), "x.tsv:2: the label"));
}

TEST_CASE("criteo: label, logarithms, hashed categories, and what is wrong with a line") {
  const temporary_folder f;
  const std::vector<rg_input> inputs{index("label", RG_I32, {}, 2), values("features", RG_F32, {13}),
                                     index("ids", RG_I32, {26}, 1000)};
  std::string first = "1\t0\t7\t-1", second = "0\t\t\t";
  for (int i = 3; i < 13; ++i) first += "\t", second += "\t";
  for (int i = 0; i < 26; ++i) first += "\t68fd1e64", second += i ? "\t" : "\t68fd1e64";
  data_config c = dataset("criteo", f.write("good.tsv", first + "\r\n" + second));
  c.shuffle = false;
  const auto source = open(c, inputs);
  const filled data = all(*source, inputs);
  CHECK(data.as<std::int32_t>(0) == std::vector<std::int32_t>{1, 0});
  const auto features = data.as<float>(1);
  CHECK(features[0] == 0);
  CHECK(features[1] == doctest::Approx(std::log(8.0F)));
  CHECK(features[2] == 0);
  const auto ids = data.as<std::int32_t>(2);
  CHECK(ids[0] == ids[26]); // the same category in the same slot
  CHECK(std::set<std::int32_t>(ids.begin(), ids.begin() + 26).size() > 20);

  const auto complaint = [&](const std::string& line) {
    const auto bad = open(dataset("criteo", f.write("bad.tsv", line + "\n")), inputs);
    return failure_of([&] { all(*bad, inputs); }, exit_code::run);
  };
  CHECK(contains(complaint("1\t2\t3"), "bad.tsv:1: expected 40 columns, got 3"));
  CHECK(contains(complaint(first + "\t1"), "bad.tsv:1: more than 40 columns"));
  CHECK(contains(complaint("x" + line_tail), "bad.tsv:1: the label"));
  CHECK(contains(complaint("1\tmany" + line_tail.substr(1)), "bad.tsv:1: number 1 is none: \"many\""));
  CHECK(contains(complaint(""), "bad.tsv:1: 1 columns"));

  c = dataset("criteo", f.write("some.tsv", first + "\nrubbish\n" + second + "\n"));
  c.on_bad_record = "skip";
  c.shuffle = false;
  const auto skipping = open(c, inputs);
  CHECK(all(*skipping, inputs).as<std::int32_t>(0) == std::vector<std::int32_t>{1, 0, 0});
  CHECK(skipping->skipped() == 1);
  c.path = f.write("none.tsv", "rubbish\n").string();
  const auto none = open(c, inputs);
  CHECK(contains(failure_of([&] { all(*none, inputs); }, exit_code::run), "expected a record that can be read"));
}

TEST_CASE("formats refuse inputs that they cannot feed, files that are not there, and empty ones") {
  const temporary_folder f;
  const auto text = f.write("text", "a b c\n");
  for (const char* format : {"criteo", "words", "sentences", "queries"}) {
    CAPTURE(format);
    CHECK(contains(failure_of([&] { open(dataset(format, text), {index("pixel", RG_I32, {}, 9)}); }, exit_code::usage),
                   "pixel"));
    CHECK(contains(failure_of([&] { open(dataset(format, f.path() / "gone"), {}); }, exit_code::usage), "gone"));
  }
  data_config empty = dataset("criteo", f.write("e", ""));
  CHECK(contains(failure_of([&] { open(empty, {}); }, exit_code::run), "/e: expected at least one sample"));
  empty.path = text.string();
  empty.evaluation_path = (f.path() / "e").string();
  CHECK(contains(failure_of([&] { make_evaluation_source(empty, {}, 1); }, exit_code::run),
                 "/e: expected at least one sample"));
  CHECK(contains(failure_of([&] { open(dataset("criteo", text), {index("ids", RG_I32, {27}, 9)}); }, exit_code::usage),
                 "27"));
  CHECK(contains(failure_of([&] { open(dataset("words", text), {index("word", RG_I32, {2}, 9)}); }, exit_code::usage),
                 "word"));
  CHECK(contains(failure_of([&] { open(dataset("parallel", f.path()), {}); }, exit_code::usage), "source.txt"));
  f.write("source.txt", "a\nb\n");
  f.write("target.txt", "a\n");
  CHECK(contains(failure_of([&] { open(dataset("parallel", f.path()), {}); }, exit_code::run), "translation"));
}

TEST_CASE("words: neighbours within the window, frequent first, rare ones out, frequent ones dropped at times") {
  const temporary_folder f;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat sat\nthe dog ran far\nthe end\n";
  text += "once\n";
  data_config c = dataset("words", f.write("text", text));
  c.min_count = 2;
  c.window = 1;
  c.subsample = 0;
  const std::vector<rg_input> inputs{index("word", RG_I32, {}, 100), index("context", RG_I32, {}, 100)};
  const auto source = open(c, inputs);
  CHECK(source->size() == 200 * 9);
  const auto pairs_of = [&](data_source& s) {
    const filled data = fill(s, inputs, 0, 4 * s.size(), 0, 4 * s.size());
    std::map<std::pair<std::int64_t, std::int64_t>, int> pairs;
    for (std::size_t i = 0; i < 4 * s.size(); ++i) ++pairs[{data.integer(0, i), data.integer(1, i)}];
    return pairs;
  };
  // the 600; then, by the alphabet, cat, dog, end, far, ran, sat 200 each: ids 1 to 6
  const auto pairs = pairs_of(*source);
  const std::set<std::pair<std::int64_t, std::int64_t>> possible{{0, 1}, {1, 0}, {1, 6}, {6, 1}, {0, 2}, {2, 0},
                                                                 {2, 5}, {5, 2}, {5, 4}, {4, 5}, {0, 3}, {3, 0}};
  CHECK(pairs.size() == possible.size());
  for (const auto& [pair, count] : pairs) CHECK(possible.contains(pair));
  // Each of the twelve is as frequent as any other in the text.
  for (const auto& [pair, count] : pairs) CHECK(std::abs(count - 4 * 1800 / 12) < 150);

  // What negative sampling draws by, subsampled or not, through a queue, too.
  const std::vector<double> counts{600, 200, 200, 200, 200, 200, 200};
  CHECK(source->frequencies(1) == counts);
  data_config queued = c;
  queued.source = "queue";
  queued.queue_source = "dataset";
  CHECK(open(queued, inputs)->frequencies(1) == counts);

  c.subsample = 0.01; // "the" is a third of all words: kept with (sqrt(33.3) + 1) / 33.3 = 0.203; the others with 0.39
  int with_the = 0, without = 0;
  for (const auto& [pair, count] : pairs_of(*open(c, inputs)))
    (pair.first == 0 || pair.second == 0 ? with_the : without) += count;
  CHECK(static_cast<double>(with_the) / without == doctest::Approx(0.203 / 0.39).epsilon(0.15));

  // The vocabulary is kept, and made again when the text changes.
  REQUIRE(std::filesystem::exists(f.path() / "text.2.vocabulary"));
  CHECK(f.read("text.2.vocabulary").find("\nthe 600\ncat 200\n") != std::string::npos);
  f.write("text", "new new words words\n");
  open(c, inputs);
  CHECK(f.read("text.2.vocabulary").ends_with("\nnew 2\nwords 2\n"));
  c.vocabulary = f.write("mine", "words 5\nnew 3\n").string();
  c.subsample = 0;
  const auto given = open(c, inputs);
  CHECK(given->size() == 4);
  c.vocabulary = f.write("broken", "words five\n").string();
  CHECK(contains(failure_of([&] { open(c, inputs); }, exit_code::run), "broken:1:"));
}

TEST_CASE("sentences: pairs, segments, 15 % targets of which four in five are masked") {
  const temporary_folder f;
  generate_sentences_like(f.path(), 200, 1);
  const data_config c = dataset("sentences", f.path() / "train.txt");
  const std::vector<rg_input> inputs{index("tokens", RG_I32, {24}, 500), index("segments", RG_I32, {24}, 2),
                                     index("masked_positions", RG_I32, {5}, 24),
                                     index("masked_labels", RG_I32, {5}, 500), index("next_sentence", RG_I32, {}, 2)};
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
  // Every sentence is a word of its own; documents of one to five sentences.
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
  data_config c = dataset("sentences", f.path() / "train.txt");
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
  data_config c = dataset("sentences", f.path() / "train.txt");
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

TEST_CASE("parallel: source with its end, target shifted by one against its label, too long ones cut") {
  const temporary_folder f;
  f.write("source.txt", "a b\nc d e f g\n");
  f.write("target.txt", "x y\nx x x x x x\n");
  data_config c = dataset("parallel", f.path());
  c.shuffle = false;
  const std::vector<rg_input> inputs{index("source", RG_I32, {4}, 100), index("target_in", RG_I32, {4}, 100),
                                     index("target_out", RG_I32, {4}, 100)};
  const filled data = all(*open(c, inputs), inputs);
  using ids = std::vector<std::int32_t>;
  const ids source = data.as<std::int32_t>(0), target = data.as<std::int32_t>(1), label = data.as<std::int32_t>(2);
  const std::int32_t x = 5; // the most frequent word
  CHECK(source[2] == 3);
  CHECK(source[3] == 0);
  CHECK(ids(source.begin() + 4, source.end())[3] == 3);
  CHECK(ids(target.begin(), target.begin() + 2) == ids{2, x});
  CHECK(target[2] == label[1]);
  CHECK(ids(label.begin() + 2, label.begin() + 4) == ids{3, 0});
  CHECK(ids(target.begin() + 4, target.end()) == ids{2, x, x, x});
  CHECK(ids(label.begin() + 4, label.end()) == ids{x, x, x, 3});
  f.write("target.txt", "x y\n\n");
  const auto bad = open(c, inputs);
  CHECK(contains(failure_of([&] { all(*bad, inputs); }, exit_code::run), "source.txt:2"));
}

TEST_CASE("queries: two columns or three") {
  const temporary_folder f;
  data_config c = dataset("queries", f.write("q.tsv", "a\tb\nc\td\ne\tf\tg\n"));
  c.shuffle = false;
  const std::vector<rg_input> inputs{index("query", RG_I32, {2}, 100), index("positive", RG_I32, {2}, 100),
                                     index("negative", RG_I32, {2}, 100)};
  const filled data = all(*open(c, inputs), inputs);
  // All words come once: a to g are 2 to 8, by the alphabet.
  CHECK(data.as<std::int32_t>(0) == std::vector<std::int32_t>{2, 0, 4, 0, 6, 0});
  CHECK(data.as<std::int32_t>(1) == std::vector<std::int32_t>{3, 0, 5, 0, 7, 0});
  const auto negative = data.as<std::int32_t>(2);
  CHECK((negative[0] == 5 || negative[0] == 7));
  CHECK((negative[2] == 3 || negative[2] == 7));
  CHECK(negative[4] == 8);
  const auto bad = open(dataset("queries", f.write("bad.tsv", "a\tb\nlonely\n")), inputs);
  CHECK(contains(failure_of([&] { all(*bad, inputs); }, exit_code::run), "bad.tsv:2: 1 columns"));
}

TEST_CASE("a vocabulary is not written through a link that somebody else planted") {
  const temporary_folder f;
  const auto text = f.write("text", "a b c a\n"), victim = f.write("victim", "untouched");
  const std::vector<rg_input> inputs{index("word", RG_I32, {}, 9), index("context", RG_I32, {}, 9)};
  // Names that can be guessed: in a folder that others may write they can lead anywhere.
  const std::string name = text.string() + ".1.vocabulary";
  for (const std::string& planted : {name + "." + std::to_string(::getpid()) + ".tmp", name})
    std::filesystem::create_symlink(victim, planted);
  open(dataset("words", text), inputs);
  CHECK(f.read("victim") == "untouched");
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(name)));
  CHECK(f.read("text.1.vocabulary").starts_with("regatta-vocabulary 1 "));
  // Nothing else stays.
  CHECK(std::distance(std::filesystem::directory_iterator(f.path()), {}) == 4);
}

TEST_CASE("data is opened and read before anything starts, and what is wrong is said with its key") {
  const temporary_folder f;
  const std::vector<rg_input> inputs{index("label", RG_I32, {}, 2), values("features", RG_F32, {13})};
  data_config c = dataset("criteo", f.write("good.tsv", "1" + line_tail + "\n"));
  c.evaluation_path = c.path;
  check_data(c, inputs);
  const auto refusal = [&](const data_config& of, const std::vector<rg_input>& by) {
    return failure_of([&] { check_data(of, by); }, exit_code::usage);
  };
  CHECK(refusal(c, {index("pixel", RG_I32, {}, 9)}).starts_with("data.format: the model's input \"pixel\""));
  data_config wrong = c;
  wrong.evaluation_path = f.write("rubbish", "rubbish\n").string();
  CHECK(refusal(wrong, inputs).starts_with("data.evaluation_path: "));
  CHECK(contains(refusal(wrong, inputs), "rubbish:1: expected 40 columns, got 1"));
  wrong.path = wrong.evaluation_path;
  std::string both;
  try {
    check_data(wrong, inputs);
  } catch (const failure& e) {
    both = e.what();
  }
  CHECK(both.starts_with("data.path: "));
  CHECK(contains(both, "\ndata.evaluation_path: "));
  CHECK(std::ranges::count(both, '\n') == 1); // a line for each key
  wrong.evaluation_path.clear();
  wrong.source = "queue";
  wrong.queue_source = "dataset";
  CHECK(refusal(wrong, inputs).starts_with("data.path: "));
  wrong.queue_source = "random";
  check_data(wrong, inputs); // nobody reads a file
  wrong.source = "dataset";
  wrong.path = (f.path() / "gone").string();
  CHECK(refusal(wrong, inputs) ==
        "data.path: expected a file or a folder, got " + wrong.path + ", which does not exist");

  // The first records only, and nothing is written.
  std::string many;
  for (int i = 0; i < 3000; ++i) many += i == 2000 ? "rubbish\n" : "0" + line_tail + "\n";
  c.path = f.write("many.tsv", many).string();
  check_data(c, inputs);
  const std::vector<rg_input> words{index("query", RG_I32, {4}, 9), index("positive", RG_I32, {4}, 9)};
  data_config text = dataset("queries", f.write("queries", "a b\tc d\te f\n"));
  for (const char* tokens : {"words", "subwords"}) {
    text.tokens = tokens;
    check_data(text, words);
  }
  CHECK(contains(refusal(dataset("sentences", f.write("empty", "\n\n")), {index("tokens", RG_I32, {8}, 9)}),
                 "data.path: "));
  CHECK(std::distance(std::filesystem::directory_iterator(f.path()), {}) == 5); // no vocabulary
}

#if REGATTA_SENTENCEPIECE
TEST_CASE("subwords are trained once, kept, and the same for training and evaluation") {
  const temporary_folder f;
  generate_parallel_like(f.path(), 300, 1);
  data_config c = dataset("parallel", f.path() / "train");
  c.tokens = "subwords";
  c.evaluation_path = (f.path() / "test").string();
  const std::vector<rg_input> inputs{index("source", RG_I32, {16}, 80), index("target_in", RG_I32, {16}, 80)};
  const filled data = all(*open(c, inputs), inputs);
  CHECK(std::filesystem::exists(f.path() / "train/source.txt.80.subwords"));
  const auto ids = data.as<std::int32_t>(0);
  CHECK(*std::ranges::max_element(ids) > 20);
  CHECK(*std::ranges::max_element(ids) < 80);
  const auto changed = std::filesystem::last_write_time(f.path() / "train/source.txt.80.subwords");
  const auto test = make_evaluation_source(c, inputs, 1);
  CHECK(all(*test, inputs).as<std::int32_t>(0)[0] > 4);
  CHECK(std::filesystem::last_write_time(f.path() / "train/source.txt.80.subwords") == changed);
  c.vocabulary = (f.path() / "train/source.txt.80.subwords").string(); // ours has the special ids
  CHECK(all(*open(c, inputs), inputs).as<std::int32_t>(0) == ids);
  // One of somebody else's, whose id 4 is a piece of a word.
  const std::string other = (f.path() / "other").string();
  REQUIRE(sentencepiece::SentencePieceTrainer::Train(
              "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3 --vocab_size=60 --hard_vocab_limit=false --minloglevel=2 "
              "--input=" +
              (f.path() / "train/source.txt").string() + " --model_prefix=" + other)
              .ok());
  c.vocabulary = other + ".model";
  CHECK(contains(failure_of([&] { open(c, inputs); }, exit_code::usage), "4 [MASK]"));
  c.vocabulary = f.write("no.model", "rubbish").string();
  CHECK(contains(failure_of([&] { open(c, inputs); }, exit_code::run), "no.model"));
}
#endif

#if REGATTA_JPEG
TEST_CASE("a small file that claims to be a huge image is refused before memory is taken for it") {
  const image p{32, 32, std::vector<std::uint8_t>(std::size_t{3} * 32 * 32, 100)};
  auto bytes = encode_jpeg(p, 90);
  const std::uint8_t start_of_frame[] = {0xff, 0xc0};
  const auto at = std::ranges::search(bytes, start_of_frame).begin();
  REQUIRE(at + 9 < bytes.end());
  for (const std::uint8_t kind : {0xc0, 0xc2}) { // baseline and progressive
    at[1] = kind;
    for (int i = 0; i < 4; ++i) at[5 + i] = i % 2 ? 0xe8 : 0xfd; // 65000 x 65000
    image out;
    std::string why;
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    CHECK_FALSE(decode_jpeg(bytes, 32, out, why));
    getrusage(RUSAGE_SELF, &after);
    CHECK(contains(why, "claims 65000 x 65000 pixels"));
    CHECK(after.ru_maxrss - before.ru_maxrss < 16 << 10); // KiB; 12 GB were asked for
    CHECK(out.pixels.empty());
  }
}

TEST_CASE("imagenet: classes by folder, crops of the right size, damaged and unknown ones named") {
  const temporary_folder f;
  generate_imagenet_like(f.path(), 3, 5, 64, 1);
  data_config c = dataset("imagenet", f.path() / "train");
  c.evaluation_path = (f.path() / "test").string();
  const std::vector<rg_input> inputs{values("image", RG_F32, {3, 32, 32}), index("label", RG_I32, {}, 1000)};
  const auto source = open(c, inputs);
  CHECK(source->size() == 15);
  const filled data = all(*source, inputs);
  std::map<std::int32_t, int> labels;
  for (const std::int32_t l : data.as<std::int32_t>(1)) ++labels[l];
  CHECK(labels == std::map<std::int32_t, int>{{0, 5}, {1, 5}, {2, 5}});
  double sum = 0;
  for (const float v : data.as<float>(0)) sum += static_cast<double>(v);
  CHECK(std::abs(sum / (15 * 3072)) < 0.7); // about normalised
  CHECK(fill(*source, inputs, 1, 15, 0, 15).bytes != data.bytes);

  // The middle of an image of one colour is that colour, whatever its size; bytes are not normalised.
  image p{50, 40, std::vector<std::uint8_t>(std::size_t{3} * 50 * 40, 0)};
  for (std::size_t i = 0; i < p.pixels.size(); i += 3) p.pixels[i] = 200;
  const auto bytes = encode_jpeg(p, 95);
  std::filesystem::create_directories(f.path() / "one/class000");
  f.write("one/class000/x.JPG", std::string(bytes.begin(), bytes.end()));
  c.evaluation_path = (f.path() / "one").string();
  const std::vector<rg_input> raw{values("image", RG_U8, {3, 32, 32})};
  const auto pixels = all(*make_evaluation_source(c, raw, 1), raw).as<std::uint8_t>(0);
  CHECK(std::abs(pixels[0] - 200) < 4);
  CHECK(pixels[1024 * 2] < 4);

  f.write("train/class001/00002.jpg", std::string(bytes.begin(), bytes.begin() + 400)); // cut off
  const auto damaged = open(c, inputs);
  CHECK(contains(failure_of([&] { all(*damaged, inputs); }, exit_code::run), "class001/00002.jpg"));
  c.on_bad_record = "skip";
  c.threads = 2;
  const auto skipping = open(c, inputs);
  all(*skipping, inputs);
  CHECK(skipping->skipped() == 1);
  std::filesystem::create_directories(f.path() / "one/dragon");
  CHECK(contains(failure_of([&] { make_evaluation_source(c, inputs, 1); }, exit_code::usage), "dragon"));
  CHECK(contains(failure_of([&] { open(c, {index("label", RG_I32, {}, 2)}); }, exit_code::usage), "3 classes"));
}
#endif

TEST_CASE("random words come by Zipf, classes evenly") {
  const std::vector<rg_input> inputs{index("word", RG_I32, {10}, 100'000), index("class", RG_I32, {10}, 1000)};
  data_config c;
  c.source = "random";
  const auto source = make_source(c, inputs, 1);
  const filled data = fill(*source, inputs, 0, 20'000, 0, 20'000);
  std::map<std::int64_t, int> words, classes;
  for (std::size_t i = 0; i < 200'000; ++i) {
    ++words[data.integer(0, i)];
    ++classes[data.integer(1, i)];
  }
  double harmonic = 0;
  for (int k = 1; k <= 100'000; ++k) harmonic += 1.0 / k;
  for (const int k : {1, 2, 3, 10, 30}) CHECK(words[k - 1] == doctest::Approx(200'000 / harmonic / k).epsilon(0.1));
  CHECK(words.rbegin()->first < 100'000);
  CHECK(classes[0] < 300);
  filled parts = fill(*source, inputs, 0, 20'000, 0, 5'000);
  parts.append(fill(*source, inputs, 0, 20'000, 5'000, 15'000));
  CHECK(parts.bytes == data.bytes);
  c.zipf = 0;
  const filled even = fill(*make_source(c, inputs, 1), inputs, 0, 20'000, 0, 20'000);
  int first = 0;
  for (std::size_t i = 0; i < 200'000; ++i) first += even.integer(0, i) == 0;
  CHECK(first < 20);
}

TEST_CASE("zipf of other exponents") {
  for (const double s : {0.5, 1.5, 2.0}) {
    CAPTURE(s);
    const zipf z(50, s);
    std::vector<int> counts(50);
    for (std::uint64_t i = 0; i < 100'000; ++i) ++counts.at(z.at(7, i));
    double total = 0;
    for (int k = 1; k <= 50; ++k) total += std::pow(k, -s);
    for (const int k : {1, 2, 5, 20}) {
      const double expected = 100'000 * std::pow(k, -s) / total;
      CHECK(std::abs(counts[static_cast<std::size_t>(k - 1)] - expected) < 5 * std::sqrt(expected));
    }
  }
}

TEST_CASE("a thread pool shares a loop, and hands on what is thrown") {
  thread_pool c(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<int>> done(97);
    c.each(97, [&](std::uint64_t k) { ++done[k]; });
    for (const auto& d : done) CHECK(d == 1);
  }
  CHECK_THROWS_WITH_AS(c.each(1000,
                              [](std::uint64_t k) {
                                if (k == 500) throw std::runtime_error("five hundred");
                              }),
                       "five hundred", std::runtime_error);
  int after = 0;
  c.each(1, [&](std::uint64_t) { ++after; });
  CHECK(after == 1);
}

TEST_CASE("generated data is written whole, where data.path is missing and points to it") {
  const temporary_folder f;
  data_config c = dataset("queries", f.path() / "set/train.tsv");
  CHECK(!data_to_generate(c)); // nobody asked for it
  c.generate = true;
  const auto missing = data_to_generate(c);
  REQUIRE(missing);
  CHECK(missing->folder == f.path() / "set");
  // A set of a few lines in place of the format's own, for time.
  const data_generator few{"queries", "a few", "train.tsv",
                           [](const std::filesystem::path& to) { generate_queries_like(to, 50, 1); }};
  write_generated_data(few, missing->folder);
  CHECK(std::filesystem::exists(c.path));
  CHECK(!data_to_generate(c));
  CHECK_THROWS_WITH_AS(write_generated_data(few, missing->folder), doctest::Contains("is not empty"), failure);

  const data_generator broken{"queries", "half", "train.tsv", [](const std::filesystem::path& to) {
                                generate_queries_like(to, 50, 1);
                                throw failure(exit_code::run, "disk full");
                              }};
  CHECK_THROWS_AS(write_generated_data(broken, f.path() / "other"), failure);
  CHECK(!std::filesystem::exists(f.path() / "other"));
  CHECK(std::distance(std::filesystem::directory_iterator(f.path()), {}) == 1); // nothing half-made lies about

  c.path = (f.path() / "elsewhere.tsv").string();
  CHECK_THROWS_WITH_AS(data_to_generate(c), doctest::Contains("ends in train.tsv"), failure);
  c.format = "npy";
  CHECK_THROWS_WITH_AS(data_to_generate(c), doctest::Contains("there is no generator for"), failure);
}
