// SPDX-License-Identifier: Apache-2.0
//
// The printed output of a small campaign: heading, table and the line below them.
#include "program.hpp"

using namespace regatta::test;

namespace {

const char* const two_models = R"(
[model]
plugin = "mlp"
[model.mlp]
hidden = [16]
[model.bert]
layers = 1
hidden = 16
heads = 2
vocabulary = 100
sequence = 16
predictions = 2
[data]
source = "random"
content = "uniform"
[train]
batch = 4
kernels = "fixed"
[optimizer]
lr = 0.005
[optimizer.schedule]
name = "linear"
length = 100
[measure]
warmup = 0
steps = 3
repeats = 1
[sweep]
"model.plugin" = ["mlp", "bert"]
"cluster.workers" = [1, 2]
"strategy.bucket" = ["1MiB"]
[report]
rows = "model.plugin"
columns = "cluster.workers"
value = "throughput"
)";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a campaign of two models: units, settings, cores, and no live line before the table") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << two_models;
  const std::string command = "cd " + s.path.string() +
                              " && " REGATTA_PROGRAM " run x.toml --out result --progress always >both 2>&1 </dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
  const std::string both = read(s.path / "both");
  CAPTURE(both);
  const std::size_t heading = both.find("x   momentum, lr 0.005, schedule linear (length 100)   fp32, executor ");
  REQUIRE(heading != std::string::npos);
  CHECK(both.substr(0, heading).ends_with("\r\x1b[K"));
  const std::string table = both.substr(heading);
  CHECK_FALSE(has(table, "\x1b"));
  CHECK(has(table, "   1 thread and batch 4 a worker   data random, content uniform\n"));
  CHECK(has(table, "\nbert.heads: 2   bert.hidden: 16   bert.layers: 1   bert.predictions: 2   bert.sequence: 16   "
                   "bert.vocabulary: 100   mlp.hidden: [16]   train.kernels: fixed   measure.warmup: 0   "
                   "strategy.bucket: 1MiB   algorithms: native\n"));
  CHECK(has(table, "  E none  E/E none  lost to "));
  CHECK(has(table, "\nthroughput [global]\nmodel \\ workers  unit "));
  CHECK(has(table, "\nmlp              images/s "));
  CHECK(has(table, "\nbert             sequences/s "));

  const json document = parsed(read(s.path / "result/result.json"));
  const json& context = document.at("context");
  CHECK(context.at("cases") == 4);
  CHECK(context.at("given").at("model").at("bert").at("layers") == 1);
  const json& host = context.at("hosts").at(0);
  CHECK(host.at("core_independence").is_null() == (host.at("cores") == 1));
  CHECK(has(table, "   2 cores at once: FMA ") == (host.at("cores") != 1));
  for (const json& entry : document.at("results")) {
    CHECK(entry.at("flops_per_sample").get<double>() > 0);
    CHECK(entry.at("efficiency_over_contention").is_object() == (entry.at("workers") == 2));
    CHECK(entry.at("throughput").at("unit") ==
          (entry.at("case").at("model.plugin") == "mlp" ? "images/s" : "sequences/s"));
  }
}

TEST_CASE("without a verb the verbs are printed") {
  const temporary_folder s;
  const outcome o = program(s, "");
  CHECK(o.code == 0);
  CHECK(o.err.empty());
  for (const char* verb : {"\n  run ", "\n  list ", "\n  describe ", "\n  check ", "\n  comm ", "\n  doctor "})
    CHECK(has(o.out, verb));
  CHECK(program(s, "--plugin-path").code == 2); // options alone are no verb
}
