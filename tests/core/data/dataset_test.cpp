// SPDX-License-Identifier: Apache-2.0
//
// Files as a source of batches: shares of a batch, queues, the check before a run, generated files.
#include "data_fixture.hpp"

#include "data/data_generators.hpp"
#include "data/generate_datasets.hpp"

#include <map>

using namespace data_fixture;
using namespace regatta;

TEST_CASE("threads that read a dataset count beside the compute thread, except of formats that one thread reads") {
  data_config c;
  c.threads = 4;
  for (const char* format : {"imagenet", "criteo", "words", "sentences", "parallel", "queries", "cifar10", "npy"}) {
    CAPTURE(format);
    c.format = format;
    const std::size_t more = c.format == "cifar10" || c.format == "npy" ? 0 : 3;
    c.source = "dataset";
    CHECK(input_threads(c) == more);
    c.source = "queue";
    c.queue_source = "dataset";
    CHECK(input_threads(c) == more + 1);
    c.queue_source = "random";
    CHECK(input_threads(c) == 1);
    c.source = "random";
    CHECK(input_threads(c) == 0);
  }
}

TEST_CASE("any share of a batch is the same samples, on any number of threads, behind a queue or not") {
  const temporary_folder f;
  generate_criteo_like(f.path, 100, 1);
  generate_words_like(f.path / "words", 50, 3, 1);
  generate_sentences_like(f.path / "sentences", 20, 1);
  generate_parallel_like(f.path / "parallel", 60, 1);
  generate_queries_like(f.path / "queries", 60, 1);
  const std::map<std::string, std::filesystem::path> files = {{"criteo", "train.tsv"},
                                                              {"words", "words/train.txt"},
                                                              {"sentences", "sentences/train.txt"},
                                                              {"parallel", "parallel/train"},
                                                              {"queries", "queries/train.tsv"}};
  for (const text_format& o : text_formats()) {
    CAPTURE(o.name);
    data_config c = dataset(o.name, f.path / files.at(o.name));
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
    open(c, o.inputs)->plan({24, 0, 4, 1}); // a producer ends even if no batch was requested
  }
}

TEST_CASE("a queue hands on what its source fails with") {
  const temporary_folder f;
  data_config c = dataset("criteo", f.write("x.tsv", "1" + line_tail + "\n2" + line_tail + "\n"));
  c.source = "queue";
  c.queue_source = "dataset";
  const std::vector<rg_input> inputs{index("label", RG_I32, {}, 2)};
  const auto queue = open(c, inputs);
  CHECK(contains(failure_of([&] { fill(*queue, inputs, 0, 4, 0, 4); }, exit_code::plugin), "step 0"));
  queue->plan({4, 0, 4, 1});
  CHECK(contains(failure_of([&] { fill(*queue, inputs, 0, 4, 0, 4); }, exit_code::run), "x.tsv:2: the label"));
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
  const std::string unfed = refusal(c, {index("pixel", RG_I32, {}, 9)});
  CHECK(unfed.starts_with("data.format: format \"criteo\" feeds "));
  CHECK(unfed.ends_with("the model takes an input \"pixel\" too"));
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
  check_data(wrong, inputs); // no file is read
  wrong.source = "dataset";
  wrong.path = (f.path / "gone").string();
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
  CHECK(std::distance(std::filesystem::directory_iterator(f.path), {}) == 5); // no vocabulary
}

TEST_CASE("generated data is written whole, where data.path is missing and points to it") {
  const temporary_folder f;
  data_config c = dataset("queries", f.path / "set/train.tsv");
  CHECK(!data_to_generate(c)); // `generate` is not set
  c.generate = true;
  const auto missing = data_to_generate(c);
  REQUIRE(missing);
  CHECK(missing->folder == f.path / "set");
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
  CHECK_THROWS_AS(write_generated_data(broken, f.path / "other"), failure);
  CHECK(!std::filesystem::exists(f.path / "other"));
  CHECK(std::distance(std::filesystem::directory_iterator(f.path), {}) == 1); // no incomplete folder is left

  c.path = (f.path / "elsewhere.tsv").string();
  CHECK_THROWS_WITH_AS(data_to_generate(c), doctest::Contains("ends in train.tsv"), failure);
  const data_config images = [&] {
    data_config d = dataset("imagenet", f.path / "images/train/");
    d.generate = true;
    return d;
  }();
  CHECK(data_to_generate(images).value().folder == f.path / "images");
  c.format = "npy";
  CHECK_THROWS_WITH_AS(data_to_generate(c), doctest::Contains("there is no generator for"), failure);
}
