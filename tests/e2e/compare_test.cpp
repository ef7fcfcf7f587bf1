// SPDX-License-Identifier: Apache-2.0
//
// regatta compare and regatta history, on results that the program itself wrote.
#include "program.hpp"

using namespace regatta::test;

namespace {

const char* const tiny = R"(
[model]
plugin = "null"
[train]
batch = 8
kernels = "fixed"
[cluster]
workers = 2
[measure]
warmup = 0
steps = 20
repeats = 2
baseline = false
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("results are compared case by case, in each format; gates decide the exit code; history lists them by date") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  for (const char* out : {"a", "b"})
    REQUIRE(program(s, std::string("run x.toml --progress never --out ") + out).code == 0);
  REQUIRE(program(s, "run x.toml --progress never --out c --set train.batch=16").code == 0);

  const outcome same = program(s, "compare a b/result.json");
  CHECK(same.code == 0);
  CHECK(has(same.out, "A: a (strategy allreduce)\nB: b/result.json (strategy allreduce)\n"));
  CHECK(has(same.out, "A: a (strategy sync_ps)\nB: b/result.json (strategy sync_ps)\n"));
  CHECK(has(same.out, "no setting, fingerprint or machine differs\n"));
  CHECK(has(same.out, "cannot be decided with 2 repeats: "));
  CHECK(has(same.out, "equal in every repeat")); // the bytes

  const json j = parsed(program(s, "compare a b --format json").out);
  CHECK(j.at("schema") == "regatta.comparison/1");
  REQUIRE(j.at("cases").size() == 2);
  CHECK(j.at("cases").at(0).at("figures").at(0).at("figure") == "samples_per_second");
  CHECK(has(program(s, "compare a b --format csv").out, "\na (strategy allreduce),"));
  CHECK(has(program(s, "compare a b --format markdown").out, "| figure |"));

  // Other settings are named, and other work is compared all the same where only its amount differs.
  CHECK(has(program(s, "compare a c").out, "differs: train.batch: 8 -> 16\n"));
  // Within one result: its first case with the other. Without a baseline they run in rounds of their own.
  const json own = json::parse(read(s.path / "a/result.json")).at("results");
  CHECK(own.at(0).at("repeats").at(0).at("round") != own.at(1).at("repeats").at(0).at("round"));
  CHECK(has(program(s, "compare a").out, "differs: strategy.plugin: allreduce -> sync_ps\n"));

  CHECK(program(s, "compare a b --gate 'bytes.sent_per_step +1%'").code == 0);
  const outcome failed = program(s, "compare a --gate 'bytes.sent_per_step +1%' --gate 'samples_per_second -99%'");
  const outcome reversed = program(s, "compare a --gate 'efficiency -1%'"); // without baseline there is none
  CHECK(reversed.code == 5);
  CHECK(has(reversed.out, "gate efficiency -1 % FAILED: no compared case has this figure\n"));
  CHECK(has(failed.out, "gate bytes.sent_per_step +1 % "));
  CHECK(has(failed.out, "gate samples_per_second -99 % undecided: "));

  const outcome past = program(s, "history . --figure step_seconds");
  CHECK(past.code == 0);
  CHECK(has(past.out, "strategy allreduce\n"));
  CHECK(std::count(past.out.begin(), past.out.end(), '\n') >= 10);
  CHECK(parsed(program(s, "history . --format json").out).at("points").size() == 6);
}

TEST_CASE("a strategy that compresses gradients is not called faster than one that sends them in 32 bits") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small_experiment(4) << R"(
[cluster]
workers = 2
[strategy.allreduce]
algorithm = "ring"
[sweep]
"strategy.plugin" = ["allreduce", "dgc"]
)";
  REQUIRE(program(s, "run x.toml --progress never --out a").code == 0);
  const json entries = parsed(read(s.path / "a" / "result.json")).at("results");
  CHECK(entries.at(0).at("lossy") == false);
  CHECK(entries.at(1).at("lossy") == true);
  const outcome plain = program(s, "compare a");
  CHECK(has(plain.out,
            "note: one side compresses gradients, so samples/s are no speed-up without a baseline that sends"));
  CHECK_FALSE(has(plain.out, "\nsamples_per_second"));
  REQUIRE(program(s, "run x.toml --progress never --out b --set strategy.allreduce.wire=bf16").code == 0);
  CHECK_FALSE(has(program(s, "compare b").out, "a baseline that sends gradients in 16 bits"));
}

TEST_CASE("a document that cannot be compared is refused with its name and the expected schema") {
  const temporary_folder s;
  std::ofstream(s.path / "other.json") << R"({"schema": "regatta.comm/1"})";
  std::ofstream(s.path / "broken.json") << "{";
  const auto refused = [&](const std::string& command, const std::string& text) {
    CAPTURE(command);
    const outcome o = program(s, command);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK_MESSAGE(has(o.err, text), o.err);
  };
  refused("compare missing other.json", "missing: cannot be read; expected a file, such as result.json, or the folder");
  refused("compare other.json other.json", "other.json: expected a document of schema regatta.result/1, got ");
  refused("compare broken.json", "broken.json: ");
  refused("compare a b --gate 'sample_per_second -3%'", "did you mean \"samples_per_second\"?");
  refused("compare a b --across models", "did you mean \"model\"?");
  refused("compare a b --format html", "expected console, markdown, csv or json");
  refused("history . --figure speed", "--figure speed: expected one of samples_per_second");
  refused("history .", ".: expected a folder with results (result.json), found none");
}
