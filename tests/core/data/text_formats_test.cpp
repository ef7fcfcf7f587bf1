// SPDX-License-Identifier: Apache-2.0
//
// The formats of lines: criteo, words, parallel and queries, and their vocabularies.
#include "data_fixture.hpp"

#include "data/generate_datasets.hpp"

#include <cmath>
#include <map>
#include <set>
#include <unistd.h>

#if REGATTA_SENTENCEPIECE
#include <sentencepiece_trainer.h>
#endif

using namespace data_fixture;
using namespace regatta;

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
  CHECK(contains(complaint(""), "bad.tsv:1: expected 40 columns, got 1"));

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
    CHECK(contains(failure_of([&] { open(dataset(format, f.path / "gone"), {}); }, exit_code::usage), "gone"));
  }
  std::filesystem::create_directory(f.path / "loop");
  std::filesystem::create_symlink("link", f.path / "loop/link");
  CHECK(contains(failure_of([&] { open(dataset("criteo", f.path / "loop"), {}); }, exit_code::usage), "holds no file"));
  data_config empty = dataset("criteo", f.write("e", ""));
  CHECK(contains(failure_of([&] { open(empty, {}); }, exit_code::run), "/e: expected at least one sample"));
  empty.path = text.string();
  empty.evaluation_path = (f.path / "e").string();
  CHECK(contains(failure_of([&] { make_evaluation_source(empty, {}, 1); }, exit_code::run),
                 "/e: expected at least one sample"));
  CHECK(contains(failure_of([&] { open(dataset("criteo", text), {index("ids", RG_I32, {27}, 9)}); }, exit_code::usage),
                 "27"));
  CHECK(contains(failure_of([&] { open(dataset("words", text), {index("word", RG_I32, {2}, 9)}); }, exit_code::usage),
                 "word"));
  CHECK(contains(failure_of([&] { open(dataset("parallel", f.path), {}); }, exit_code::usage), "source.txt"));
  f.write("source.txt", "a\nb\n");
  f.write("target.txt", "a\n");
  CHECK(contains(failure_of([&] { open(dataset("parallel", f.path), {}); }, exit_code::run), "translation"));
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

  // The counts for negative sampling do not depend on subsampling or on a queue.
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
  REQUIRE(std::filesystem::exists(f.path / "text.2.vocabulary"));
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

TEST_CASE("parallel: source with its end, target shifted by one against its label, too long ones cut") {
  const temporary_folder f;
  f.write("source.txt", "a b\nc d e f g\n");
  f.write("target.txt", "x y\nx x x x x x\n");
  data_config c = dataset("parallel", f.path);
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
  CHECK(contains(failure_of([&] { all(*bad, inputs); }, exit_code::run), "bad.tsv:2: expected 2 or 3 columns, got 1"));
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
  CHECK(std::distance(std::filesystem::directory_iterator(f.path), {}) == 4);
}

#if REGATTA_SENTENCEPIECE
TEST_CASE("subwords are trained once, kept, and the same for training and evaluation") {
  const temporary_folder f;
  generate_parallel_like(f.path, 300, 1);
  data_config c = dataset("parallel", f.path / "train");
  c.tokens = "subwords";
  c.evaluation_path = (f.path / "test").string();
  const std::vector<rg_input> inputs{index("source", RG_I32, {16}, 80), index("target_in", RG_I32, {16}, 80)};
  const filled data = all(*open(c, inputs), inputs);
  CHECK(std::filesystem::exists(f.path / "train/source.txt.80.subwords"));
  const auto ids = data.as<std::int32_t>(0);
  CHECK(*std::ranges::max_element(ids) > 20);
  CHECK(*std::ranges::max_element(ids) < 80);
  const auto changed = std::filesystem::last_write_time(f.path / "train/source.txt.80.subwords");
  const auto test = make_evaluation_source(c, inputs, 1);
  CHECK(all(*test, inputs).as<std::int32_t>(0)[0] > 4);
  CHECK(std::filesystem::last_write_time(f.path / "train/source.txt.80.subwords") == changed);
  c.vocabulary = (f.path / "train/source.txt.80.subwords").string(); // ours has the special ids
  CHECK(all(*open(c, inputs), inputs).as<std::int32_t>(0) == ids);
  // One of somebody else's, whose id 4 is a piece of a word.
  const std::string other = (f.path / "other").string();
  REQUIRE(sentencepiece::SentencePieceTrainer::Train(
              "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3 --vocab_size=60 --hard_vocab_limit=false --minloglevel=2 "
              "--input=" +
              (f.path / "train/source.txt").string() + " --model_prefix=" + other)
              .ok());
  c.vocabulary = other + ".model";
  CHECK(contains(failure_of([&] { open(c, inputs); }, exit_code::usage), "4 [MASK]"));
  c.vocabulary = f.write("no.model", "rubbish").string();
  CHECK(contains(failure_of([&] { open(c, inputs); }, exit_code::run), "no.model"));
}
#endif
