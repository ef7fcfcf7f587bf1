// SPDX-License-Identifier: Apache-2.0
//
// [[claim]]: the cases that it selects, and the errors of one that selects none.
#include "config_catalogue.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace regatta;
using nlohmann::json;

namespace {

// Four cases.
const std::string sweep = R"([model]
plugin = "mlp"
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
"train.batch" = [32, 64]
)";

// The complaint about a claim after the lines above: its members begin at line 7.
std::string about(const std::string& claim, const overrides& o = {}) {
  return complaint(sweep + "[[claim]]\n" + claim, o);
}

const std::string left = "left = { strategy.plugin = \"sync_ps\", train.batch = 32 }\n",
                  right = "right = { strategy.plugin = \"allreduce\", train.batch = 32 }\n",
                  rest = "metric = \"efficiency\"\nat_least = 0.9\n";

} // namespace

TEST_CASE("a claim selects two cases by their settings") {
  const experiment e = load(sweep + R"(
[[claim]]
left = { strategy.plugin = "sync_ps", "train.batch" = 32 }
right = { strategy = { plugin = "allreduce" }, train.batch = 32, cluster.workers = 1 }
metric = "samples_per_second"
at_least = 0.9
at_most = 1
across = ["synchrony"]
text = """servers
cost little"""
[[claim]]
left = { strategy.sync_ps.bucket = "1MiB", train.batch = 64 }
metric = "efficiency"
at_least = 0.5
)");
  REQUIRE(e.claims.size() == 2);
  CHECK(e.claims[0] == json{{"left", {{"strategy.plugin", "sync_ps"}, {"train.batch", 32}}},
                            {"right", {{"strategy.plugin", "allreduce"}, {"train.batch", 32}}},
                            {"metric", "samples_per_second"},
                            {"at_least", 0.9},
                            {"at_most", 1.0},
                            {"across", {"synchrony"}},
                            {"text", "servers cost little"}});
  CHECK(e.claims[1].at("left") == json{{"strategy.plugin", "sync_ps"}, {"train.batch", 64}});
  CHECK(e.claims[1].at("right").is_null());
  CHECK(e.cases.size() == 4);
  // The only case needs no settings.
  CHECK(load("[model]\nplugin = \"mlp\"\n[[claim]]\n" + rest).claims.at(0).at("left") == json::object());
  CHECK(load(sweep).claims.empty());
}

TEST_CASE("a claim that selects no or several cases") {
  CHECK(about("left = { train.batch = 32 }\n" + rest) ==
        "f.toml:7:8: error: claim.left: expected the settings of one case, got those of 2: add strategy.plugin");
  CHECK(about("left = { train.batch = 16 }\n" + rest) ==
        "f.toml:7:8: error: claim.left: expected the settings of one of the 4 cases, got train.batch = 16, which none "
        "has");
  CHECK(about(rest) == "f.toml:6:1: error: claim.left: expected the settings of one case, got those of 4: add "
                       "strategy.plugin or train.batch");
  CHECK(about(left + "right = { strategy.geo_ps.k = 1 }\n" + rest)
            .starts_with("f.toml:8:9: error: claim.right: expected the settings of one of the 4 cases, got "));
  CHECK(about(left + "right = { strategy.plugin = \"sync_ps\", train.batch = 32 }\n" + rest) ==
        "f.toml:8:9: error: claim.right: expected another case than that of left");
  // Options may remove cases: the claim is left out.
  const experiment e = load(sweep + "[[claim]]\n" + left + right + rest, {.set = {"train.batch=8"}, .sweep = {}});
  CHECK(e.claims.empty());
  REQUIRE(e.notices.size() == 2);
  CHECK(e.notices[0].find(":7:8: notice: claim.left: the claim is left out with these options: expected ") !=
        std::string::npos);
}

TEST_CASE("wrong members of a claim") {
  CHECK(complaint("[claim]\n" + rest + "[model]\nplugin = \"mlp\"\n") ==
        "f.toml:1:1: error: claim: expected tables, each under [[claim]], got a table");
  CHECK(about(left + right + "metrik = 1\n" + rest) ==
        "f.toml:9:1: error: claim.metrik: no such key, did you mean \"metric\"?; [[claim]] has left, right, metric, "
        "at_least, at_most, across, text");
  CHECK(about(left + right + "at_least = 1\n")
            .starts_with("f.toml:6:1: error: claim.metric: must be given: one of samples_per_second, efficiency, "));
  CHECK(about(left + right + "metric = \"eficiency\"\nat_least = 1\n").ends_with("did you mean \"efficiency\"?"));
  CHECK(about(left + right + "metric = \"efficiency\"\n") ==
        "f.toml:6:1: error: claim: expected at_least or at_most: the bounds of left / right");
  for (const char* wrong : {"0", "-1", "\"1.1\"", "inf", "nan", "[1]"})
    CHECK(about(left + right + "metric = \"efficiency\"\nat_least = " + wrong)
              .starts_with("f.toml:10:12: error: claim.at_least: expected a number above 0, such as 0.95, got "));
  CHECK(about(left + right + rest + "at_most = 0.8\n") ==
        "f.toml:11:11: error: claim.at_most: expected at_least (0.9) or more, got 0.8");
  CHECK(about(left + right + rest + "text = 3\n") == "f.toml:11:8: error: claim.text: expected a string, got 3");
  CHECK(about(left + right + rest + "across = [\"speed\"]\n") ==
        "f.toml:11:10: error: claim.across: expected a list of model, data, optimizer, precision, synchrony, got "
        "[\"speed\"]");
  CHECK(about("left = \"sync_ps\"\n" + rest)
            .starts_with("f.toml:7:8: error: claim.left: expected a table of settings, such as "));
  CHECK(about("left = { strategy = \"sync_ps\" }\n" + rest).starts_with("f.toml:7:10: error: strategy: no such key"));
  CHECK(about("left = { train.batch = \"many\" }\n" + rest) ==
        "f.toml:7:24: error: train.batch: expected an integer from 1 to 1048576, got \"many\"");
  CHECK(about(left + "metric = \"seconds_to_loss\"\nat_least = 1\n").find("expected right beside") !=
        std::string::npos);
}

TEST_CASE("an error elsewhere is not followed by those of claims that select nothing because of it") {
  CHECK(complaint("[model]\nplugin = \"mlp\"\n[sweep]\n\"train.batch\" = [0, 32]\n[[claim]]\nleft = { train.batch = "
                  "32 }\n" +
                  rest) == "f.toml:4:18: error: train.batch: expected an integer from 1 to 1048576, got 0");
}

TEST_CASE("the whole experiment as one file describes the same cases and claims") {
  const scratch_folder folder;
  std::filesystem::create_directories(folder.path / "data");
  const auto file = folder.write("in/f.toml", R"([model]
plugin = "./vgg16.so"
[data]
source = "dataset"
format = "cifar10"
path = "../data"
[optimizer.schedule]
name = "step"
milestones = [3, 4]
[strategy.sync_ps]
bucket = "2MiB"
[strategy]
plugin = "allreduce"
[sweep]
"train.batch" = [32, 64]
[[sweep.zip]]
"strategy.plugin" = ["allreduce", "sync_ps"]
"strategy.sync_ps.bucket" = ["1MiB", "4MiB"]
[report]
rows = "train.batch"
columns = "strategy.plugin"
value = "efficiency"
[[claim]]
left = { strategy.plugin = "sync_ps", train.batch = 32, cluster.workers = 2 }
right = { strategy.plugin = "allreduce", train.batch = 32, cluster.workers = 2 }
metric = "efficiency"
at_least = 0.5
text = "a \"quoted\" text"
)");
  folder.write("in/vgg16.so", "");
  const overrides o{.set = {"measure.timeout=20s", "transport.plugin=tcp"}, .sweep = {"cluster.workers=1,2"}};
  const experiment before = load_experiment(file, o, test_catalogue());
  REQUIRE(before.cases.size() == 8);
  REQUIRE(before.claims.size() == 1);
  const auto whole = folder.write("elsewhere/whole.toml", whole_toml(file, o, test_catalogue(), before));
  const experiment after = load_experiment(whole, {}, test_catalogue());
  CHECK(after.name == "f");
  REQUIRE(after.cases.size() == before.cases.size());
  for (std::size_t i = 0; i < before.cases.size(); ++i) CHECK(to_json(after.cases[i]) == to_json(before.cases[i]));
  CHECK(after.claims == before.claims);
  CHECK(after.plugin_path == before.plugin_path);
  CHECK_FALSE(before.reports.empty());
  CHECK(after.reports == before.reports);
}

TEST_CASE("a parameter of --set keeps its precedence in the whole experiment") {
  const scratch_folder folder;
  const auto file =
      folder.write("f.toml", "[model]\nplugin = \"mlp\"\n[strategy]\nplugin = \"sync_ps\"\n[strategy.sync_ps]\n"
                             "bucket = \"2MiB\"\n");
  const overrides o{.set = {"strategy.bucket=4096"}, .sweep = {}};
  const experiment before = load_experiment(file, o, test_catalogue());
  REQUIRE(before.cases[0].strategy.parameters.at("bucket") == 4096);
  const auto whole = folder.write("whole.toml", whole_toml(file, o, test_catalogue(), before));
  CHECK(load_experiment(whole, {}, test_catalogue()).cases[0].strategy.parameters.at("bucket") == 4096);
}
