// SPDX-License-Identifier: Apache-2.0
#include "config_catalogue.hpp"
#include "json.hpp"

#include "config/load.hpp"
#include "config/schema_rules.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;
using nlohmann::json;

namespace {

const std::string mlp = "[model]\nplugin = \"mlp\"\n";

case_config single(const std::string& text, const overrides& o = {}) {
  const experiment e = load(text, o);
  REQUIRE(e.cases.size() == 1);
  return e.cases[0];
}

// "train.batch=32 cluster.workers=1 | ...": the cases in their order.
std::string cases_text(const experiment& e) {
  std::string text;
  for (const case_config& c : e.cases) {
    if (!text.empty()) text += " | ";
    for (std::size_t i = 0; i < c.swept.size(); ++i)
      text += (i ? " " : "") + c.swept[i].first + "=" + text_of(c.swept[i].second);
  }
  return text;
}

} // namespace

TEST_CASE("two lines are an experiment") {
  const experiment e = load(mlp);
  CHECK(e.name == "f");
  CHECK(e.swept.empty());
  CHECK(e.plugin_path.empty());
  REQUIRE(e.cases.size() == 1);
  const case_config& c = e.cases[0];
  CHECK(c.name == "f");
  CHECK(c.swept.empty());
  CHECK(c.seed == 1);
  CHECK(c.model.id == "mlp");
  CHECK(c.model.parameters.at("hidden") == json{256, 256});
  CHECK(c.model.parameters.at("dropout") == 0.5);
  CHECK(c.strategy.id == "allreduce");
  CHECK(c.strategy.parameters.at("bucket") == 4194304);
  CHECK(c.transport.id == "shm");
  CHECK(c.transport.parameters.empty());
  CHECK(c.cluster.workers == 1);
  CHECK(c.train.batch == 32);
  CHECK(c.measure.repeats == 3);
}

TEST_CASE("every key of the schema lands where it belongs") {
  const case_config c = single(R"(
    [experiment]
    name = "all keys"
    seed = 9223372036854775807
    [model]
    plugin = "vgg16"
    input = "flowers"
    batch_norm = false
    [data]
    source = "dataset"
    content = "zeros"
    format = "npy"
    path = "/usr/bin"
    evaluation_path = "/usr"
    shuffle = false
    [train]
    batch = 96
    batch_unit = "samples"
    scaling = "strong"
    accumulate = 4
    precision = "bf16"
    device = "cuda"
    kernels = "fixed"
    isa = "avx512_core"
    [optimizer]
    plugin = "adam"
    lr = 1
    momentum = 0.5
    weight_decay = 1e-4
    nesterov = true
    beta1 = 0.8
    beta2 = 0.95
    epsilon = 1e-6
    clip_norm = 2.5
    lr_scaling = "linear"
    [strategy]
    plugin = "sync_ps"
    bucket = "2MiB"
    [transport]
    plugin = "shaped"
    rate = "10Gbit/s"
    [cluster]
    workers = 3
    servers = 2
    colocate = true
    threads = 4
    pin = false
    interface = "eth0"
    spin = "20us"
    [measure]
    warmup = 0
    steps = 7
    seconds = 1.5
    repeats = 1
    baseline = false
    target = 0.75
    target_is = "at_most"
    vary_seed = true
    trace = 3
  )");
  CHECK(c.name == "all keys");
  CHECK(c.seed == 9223372036854775807u);
  CHECK(c.model.id == "vgg16");
  CHECK(c.model.parameters == std::map<std::string, json>{{"input", "flowers"}, {"batch_norm", false}});
  CHECK(c.data.source == "dataset");
  CHECK(c.data.content == "zeros");
  CHECK(c.data.format == "npy");
  CHECK(c.data.path == "/usr/bin");
  CHECK(c.data.evaluation_path == "/usr");
  CHECK_FALSE(c.data.shuffle);
  CHECK(c.train.batch == 96);
  CHECK(c.train.scaling == "strong");
  CHECK(c.train.accumulate == 4);
  CHECK(c.train.precision == "bf16");
  CHECK(c.train.device == "cuda");
  CHECK(c.train.kernels == "fixed");
  CHECK(c.train.isa == "avx512_core");
  CHECK(c.optimizer.plugin == "adam");
  CHECK(c.optimizer.lr == 1.0);
  CHECK(c.optimizer.momentum == 0.5);
  CHECK(c.optimizer.weight_decay == 1e-4);
  CHECK(c.optimizer.nesterov);
  CHECK(c.optimizer.beta1 == 0.8);
  CHECK(c.optimizer.beta2 == 0.95);
  CHECK(c.optimizer.epsilon == 1e-6);
  CHECK(c.optimizer.clip_norm == 2.5);
  CHECK(c.optimizer.lr_scaling == "linear");
  CHECK(c.strategy.id == "sync_ps");
  CHECK(c.strategy.parameters.at("bucket") == 2097152);
  CHECK(c.transport.id == "shaped");
  CHECK(c.transport.parameters.at("rate") == 1e10);
  CHECK(c.cluster.workers == 3);
  CHECK(c.cluster.servers == 2);
  CHECK(c.cluster.colocate);
  CHECK(c.cluster.threads == 4);
  CHECK_FALSE(c.cluster.pin);
  CHECK(c.cluster.interface == "eth0");
  CHECK(c.cluster.spin_ns == 20000);
  CHECK(c.measure.warmup == 0);
  CHECK(c.measure.steps == 7);
  CHECK(c.measure.seconds == 1.5);
  CHECK(c.measure.repeats == 1);
  CHECK_FALSE(c.measure.baseline);
  CHECK(c.measure.target == 0.75);
  CHECK(c.measure.target_is == "at_most");
  CHECK(c.measure.vary_seed);
  CHECK(c.measure.trace == 3);

  SUBCASE("and comes back from JSON and from the resolved file") {
    CHECK(to_json(case_from_json(to_json(c))) == to_json(c));
    CHECK(text_of(to_json(case_from_json(parsed(text_of(to_json(c)))))) == text_of(to_json(c))); // 3 is not 3.0
    CHECK(text_of(to_json(single(resolved_toml(c)))) == text_of(to_json(c)));
  }
}

TEST_CASE("a schedule is a table of the optimiser's") {
  const case_config c = single(mlp + R"(
    [optimizer.schedule]
    name = "step"
    warmup = 5
    milestones = [30, 60.5]
  )");
  CHECK(c.optimizer.schedule.name == "step");
  CHECK(c.optimizer.schedule.warmup == 5);
  CHECK(c.optimizer.schedule.milestones == std::vector<double>{30, 60.5});
  CHECK(text_of(to_json(single(resolved_toml(c)))) == text_of(to_json(c)));
  CHECK(resolved_toml(c).find("schedule.milestones = [30.0, 60.5]") != std::string::npos);
}

TEST_CASE("the resolved file of every case of a sweep runs that case alone") {
  const experiment e = load(R"(
    [model]
    plugin = "mlp"
    hidden = []
    dropout = 0
    [data]
    path = "relative \" folder"
    [strategy.geo_ps]
    k = 5
    [optimizer]
    lr = 0.1
    [sweep]
    "strategy.plugin" = ["none", "geo_ps", "allreduce"]
    "transport.plugin" = ["shm", "tcp"]
    "optimizer.epsilon" = [1e-300, 1e16, 1]
    "cluster.spin" = [0, "1us"]
  )");
  REQUIRE(e.cases.size() == 36);
  for (const case_config& c : e.cases) {
    const std::string text = resolved_toml(c, {"/somewhere"});
    CAPTURE(text);
    const experiment again = load(text);
    REQUIRE(again.cases.size() == 1);
    CHECK(again.plugin_path == std::vector<std::string>{"/somewhere"});
    json expected = to_json(c);
    expected["swept"] = json::array();
    CHECK(text_of(to_json(again.cases[0])) == text_of(expected));
    CHECK(resolved_toml(again.cases[0], {"/somewhere"}) == text);
  }
}

TEST_CASE("a case that is not ours is refused") {
  CHECK_THROWS_AS(case_from_json(json::object()), failure);
  CHECK_THROWS_AS(case_from_json(nullptr), failure);
  json j = to_json(single(mlp));
  j["train"]["batch"] = "many";
  CHECK_THROWS_AS(case_from_json(j), failure);
}

TEST_CASE("a sweep is every combination, the first key varying slowest, in the file's order") {
  const experiment e = load(mlp + "[sweep]\n\"train.batch\" = [32, 64]\n\"cluster.workers\" = [1, 2]\n");
  CHECK(e.swept == std::vector<std::string>{"train.batch", "cluster.workers"});
  CHECK(cases_text(e) == "train.batch=32 cluster.workers=1 | train.batch=32 cluster.workers=2 | "
                         "train.batch=64 cluster.workers=1 | train.batch=64 cluster.workers=2");
  CHECK(e.cases[2].train.batch == 64);
  CHECK(e.cases[2].cluster.workers == 1);
}

TEST_CASE("a swept key overrides the file's, and may be written without quotes") {
  const experiment e = load(mlp + "[train]\nbatch = 8\n[sweep]\ntrain.batch = [1, 2]\n");
  CHECK(cases_text(e) == "train.batch=1 | train.batch=2");
  CHECK(e.cases[1].train.batch == 2);
}

TEST_CASE("zipped keys go in step and multiply with the rest") {
  const experiment e = load(mlp + R"(
    [sweep]
    "train.batch" = [32, 64]
    [[sweep.zip]]
    "cluster.workers" = [1, 2]
    "cluster.servers" = [3, 4]
    [[sweep.zip]]
    "train.kernels" = ["fixed"]
  )");
  CHECK(e.swept == std::vector<std::string>{"train.batch", "cluster.workers", "cluster.servers", "train.kernels"});
  CHECK(cases_text(e) == "train.batch=32 cluster.workers=1 cluster.servers=3 train.kernels=\"fixed\" | "
                         "train.batch=32 cluster.workers=2 cluster.servers=4 train.kernels=\"fixed\" | "
                         "train.batch=64 cluster.workers=1 cluster.servers=3 train.kernels=\"fixed\" | "
                         "train.batch=64 cluster.workers=2 cluster.servers=4 train.kernels=\"fixed\"");
}

TEST_CASE("a table named after an id counts only where that id is chosen") {
  const std::string text = mlp + R"(
    [strategy]
    plugin = "sync_ps"
    bucket = "8KiB"
    [strategy.sync_ps]
    bucket = "16KiB"
    [strategy.geo_ps]
    k = 400
  )";
  CHECK(single(text).strategy.parameters == std::map<std::string, json>{{"bucket", 16384}});
  const experiment e = load(mlp + R"(
    [strategy.sync_ps]
    bucket = "16KiB"
    [strategy.geo_ps]
    k = 400
    [sweep]
    "strategy.plugin" = ["none", "sync_ps", "geo_ps"]
  )");
  REQUIRE(e.cases.size() == 3);
  CHECK(e.cases[0].strategy.parameters.empty());
  CHECK(e.cases[1].strategy.parameters == std::map<std::string, json>{{"bucket", 16384}});
  CHECK(e.cases[2].strategy.parameters == std::map<std::string, json>{{"k", 400}});
}

TEST_CASE("a swept parameter of an id makes one case where another is chosen") {
  const experiment e =
      load(mlp + "[sweep]\n\"strategy.plugin\" = [\"none\", \"geo_ps\"]\n\"strategy.geo_ps.k\" = [1, 2]\n");
  CHECK(cases_text(e) == "strategy.plugin=\"none\" | strategy.plugin=\"geo_ps\" strategy.geo_ps.k=1 | "
                         "strategy.plugin=\"geo_ps\" strategy.geo_ps.k=2");
  CHECK(e.swept == std::vector<std::string>{"strategy.plugin", "strategy.geo_ps.k"});
}

TEST_CASE("later layers win: the file, --set, a sweep; within one the table of the id") {
  const std::string text = mlp + "[strategy]\nbucket = 1024\n[strategy.allreduce]\nbucket = 2048\n";
  const auto bucket = [&](const overrides& o) { return single(text, o).strategy.parameters.at("bucket"); };
  CHECK(bucket({}) == 2048);
  CHECK(bucket({{"strategy.bucket=4096"}, {}}) == 4096);
  CHECK(bucket({{"strategy.bucket=4096", "strategy.allreduce.bucket=8192"}, {}}) == 8192);
  CHECK(bucket({{"strategy.allreduce.bucket=8192"}, {"strategy.bucket=1MiB"}}) == 1048576);
}

TEST_CASE("a case knows which parameters were set to something else than the default, as it was written") {
  const auto given = [](const std::string& text, const overrides& o) { return single(mlp + text, o).strategy.given; };
  using values = std::map<std::string, json>;
  CHECK(given("", {}).empty());
  CHECK(given("[strategy]\nbucket = \"8KiB\"\n", {}) == values{{"bucket", "8KiB"}});
  CHECK(given("[strategy]\nbucket = \"8KiB\"\n", {{"strategy.bucket=1024"}, {}}) == values{{"bucket", 1024}});
  CHECK(given("[strategy]\nbucket = \"4096KiB\"\n", {}).empty());                      // which is the default
  CHECK(given("[strategy]\nbucket = 1024\n", {{}, {"strategy.bucket=2048"}}).empty()); // swept: in its own column
}

TEST_CASE("units") {
  CHECK(single(mlp + "[transport]\nplugin = \"tcp\"\nlinger = \"50us\"").transport.parameters.at("linger") == 50000);
  CHECK(single(mlp + "[transport]\nplugin = \"tcp\"\nlinger = 7").transport.parameters.at("linger") == 7);
  CHECK(single(mlp + "[cluster]\nspin = \"1ms\"").cluster.spin_ns == 1000000);
  const case_config c = single(mlp + "[transport]\nplugin = \"shaped\"\nrate = 5");
  CHECK(c.transport.parameters.at("rate").is_number_float());
  // The sweep's columns show what the user wrote.
  CHECK(cases_text(load(mlp + "[sweep]\n\"strategy.bucket\" = [\"64KiB\", 131072]\n")) ==
        "strategy.bucket=\"64KiB\" | strategy.bucket=131072");
}

TEST_CASE("--set") {
  CHECK(single(mlp, {{"train.batch=64"}, {}}).train.batch == 64);
  CHECK(single(mlp + "[train]\nbatch = 8\n", {{"train.batch=16", "train.batch=64"}, {}}).train.batch == 64);
  CHECK(single(mlp, {{"model.plugin=vgg16", "model.input=flowers"}, {}}).model.parameters.at("input") == "flowers");
  CHECK(single(mlp, {{"model.plugin=\"vgg16\""}, {}}).model.id == "vgg16");
  CHECK(single(mlp, {{"model.hidden=[1, 2]"}, {}}).model.parameters.at("hidden") == json{1, 2});
  CHECK(single(mlp, {{"cluster={workers = 2, pin = false}"}, {}}).cluster.workers == 2);
  CHECK(single(mlp, {{"experiment.name=a=b"}, {}}).name == "a=b");
  CHECK(single("", {{"model.plugin=mlp"}, {}}).model.id == "mlp");
  // A value takes the place of the file's sweep, also where the key goes in step with others.
  CHECK(cases_text(load(mlp + "[sweep]\n\"train.batch\" = [1, 2]\n\"measure.steps\" = [3, 4]\n",
                        {{"train.batch=5"}, {}})) == "measure.steps=3 | measure.steps=4");
  const auto set_as_table =
      load(mlp + "[sweep]\n\"train.batch\" = [1, 2]\n\"train.kernels\" = [\"fixed\", \"timed\"]\n",
           {{"train={batch = 5}"}, {}});
  CHECK(cases_text(set_as_table) == "train.kernels=\"fixed\" | train.kernels=\"timed\"");
  CHECK(set_as_table.cases[0].train.batch == 5);
  CHECK(cases_text(load(mlp + "[[sweep.zip]]\n\"train.batch\" = [1, 2]\n\"measure.steps\" = [3, 4]\n",
                        {{"train.batch=5"}, {}})) == "measure.steps=3 | measure.steps=4");
}

TEST_CASE("--sweep") {
  CHECK(cases_text(load(mlp, {{}, {"train.batch=32,64", "cluster.workers=1,2"}})) ==
        "train.batch=32 cluster.workers=1 | train.batch=32 cluster.workers=2 | "
        "train.batch=64 cluster.workers=1 | train.batch=64 cluster.workers=2");
  CHECK(cases_text(load(mlp, {{}, {"model.hidden=[1,2],[3]"}})) == "model.hidden=[1,2] | model.hidden=[3]");
  CHECK(cases_text(load(mlp, {{}, {"strategy.plugin=none,\"sync_ps\""}})) ==
        "strategy.plugin=\"none\" | strategy.plugin=\"sync_ps\"");
  CHECK(load(mlp, {{}, {"experiment.seed=1"}}).cases.size() == 1);
  CHECK(load(mlp, {{}, {R"(data.path="a,\",b",'c,"')"}}).cases.size() == 2);
  // In the file's place, so that the order of the cases stays.
  CHECK(cases_text(load(mlp + "[sweep]\n\"train.batch\" = [1, 2]\n\"measure.steps\" = [3]\n",
                        {{}, {"train.batch=5,6"}})) == "train.batch=5 measure.steps=3 | train.batch=6 measure.steps=3");
  CHECK(cases_text(load(mlp + "[[sweep.zip]]\n\"train.batch\" = [1, 2]\n\"measure.steps\" = [3, 4]\n",
                        {{}, {"train.batch=5"}})) == "measure.steps=3 train.batch=5 | measure.steps=4 train.batch=5");
}

TEST_CASE("relative paths start at the file, those of options at the current folder") {
  const scratch_folder folder;
  const auto file = folder.write("f.toml", mlp + "[experiment]\nplugin_path = [\"build/../lib\", \"/opt\"]\n"
                                                 "[data]\npath = \"cifar\"\n");
  const experiment e = load_experiment(file, {}, test_catalogue());
  CHECK(e.cases[0].data.path == folder.path / "cifar");
  CHECK(e.cases[0].data.evaluation_path.empty());
  CHECK(e.plugin_path == std::vector<std::string>{folder.path / "lib", "/opt"});
  CHECK(plugin_path_of(file, {}) == e.plugin_path);

  const overrides o{{"data.path=cifar", "experiment.plugin_path=build"}, {}};
  const experiment set = load_experiment(file, o, test_catalogue());
  const auto here = std::filesystem::current_path();
  CHECK(set.cases[0].data.path == here / "cifar");
  CHECK(set.plugin_path == std::vector<std::string>{here / "build"});
  CHECK(plugin_path_of(file, o) == set.plugin_path);

  const experiment swept =
      load_experiment(file, {{"data.format=npy"}, {"data.evaluation_path=.,/usr"}}, test_catalogue());
  CHECK(swept.cases[0].data.evaluation_path == here / "");
  CHECK(swept.cases[1].data.evaluation_path == "/usr");
}

TEST_CASE("plugin_path is read from a file whatever else is wrong with it") {
  const scratch_folder folder;
  CHECK(plugin_path_of(folder.write("a.toml", "[experiment]\nplugin_path = [\"/a\"]\nbad = 1\n"), {}) ==
        std::vector<std::string>{"/a"});
  CHECK(plugin_path_of(folder.write("b.toml", "[experiment"), {}).empty());
  CHECK(plugin_path_of(folder.write("c.toml", "experiment = 5"), {}).empty());
  CHECK(plugin_path_of(folder.write("d.toml", "[experiment]\nplugin_path = [5]"), {}).empty());
  CHECK(plugin_path_of(folder.path / "missing.toml", {{"experiment.plugin_path=/a"}, {}}) ==
        std::vector<std::string>{"/a"});
}

TEST_CASE("a plugin's file in place of an id") {
  const scratch_folder folder;
  const auto so = folder.write("build/vgg16.so", "");
  const auto file = folder.write("f.toml", "[model]\nplugin = \"build/vgg16.so\"\nbatch_norm = false\n"
                                           "[experiment]\nplugin_path = [\"/opt\"]\n");
  const std::vector<std::string> path{so, "/opt"};
  CHECK(plugin_path_of(file, {}) == path);
  const experiment e = load_experiment(file, {}, test_catalogue());
  CHECK(e.cases[0].model.id == "vgg16");
  CHECK(e.cases[0].model.parameters.at("batch_norm") == false);
  CHECK(e.plugin_path == path);
  // What is resolved runs alone, in another folder too.
  const std::string resolved = resolved_toml(e.cases[0], e.plugin_path);
  CHECK(resolved.find("plugin = \"vgg16\"") != std::string::npos);
  CHECK(resolved.find(so.string()) != std::string::npos);

  // Swept, beside ids.
  const auto swept = folder.write("s.toml", mlp + "[sweep]\n\"model.plugin\" = [\"mlp\", \"./build/vgg16.so\"]\n");
  CHECK(cases_text(load_experiment(swept, {}, test_catalogue())) == R"(model.plugin="mlp" | model.plugin="vgg16")");
  CHECK(plugin_path_of(swept, {}) == std::vector<std::string>{so});
  // --set is relative to the current folder, so the file is not there.
  const overrides set{{"model.plugin=./vgg16.so"}, {}};
  CHECK(plugin_path_of(file, set) == std::vector<std::string>{"/opt"});
}

TEST_CASE("a plugin's file that cannot be chosen") {
  CHECK(complaint("[model]\nplugin = \"./missing.so\"\n")
            .find("f.toml:2:10: error: model.plugin: expected a file with one model, got \"missing.so\", which") == 0);
  CHECK(complaint("[model]\nplugin = \"./missing.so\"\n").find("missing.so\", which is not there; paths start") !=
        std::string::npos);
  CHECK(complaint("[model]\nplugin = \"/usr\"\n").find("which has none, or only one that another plugin") !=
        std::string::npos);
  CHECK(complaint(mlp + "[strategy]\nplugin = \"two.so\"\n").find("which has none, allreduce: name one of them here") !=
        std::string::npos);
  exit_code code{};
  complaint("[model]\nplugin = \"./missing.so\"\n", {}, &code);
  CHECK(code == exit_code::plugin);
}

TEST_CASE("a report names keys and figures") {
  const experiment e =
      load(mlp + "[report]\nrows = \"strategy.plugin\"\ncolumns = \"train.batch\"\nvalue = \"samples_per_second\"\n");
  CHECK(e.reports ==
        json::array({{{"rows", "strategy.plugin"}, {"columns", "train.batch"}, {"value", "samples_per_second"}}}));
  CHECK(load(mlp).reports == json::array());
}

TEST_CASE("the experiment's name, if not given, is the file's") {
  const scratch_folder folder;
  CHECK(load_experiment(folder.write("my run.v2.toml", mlp), {}, test_catalogue()).name == "my-run.v2");
  CHECK(load_experiment(folder.write("...", mlp), {}, test_catalogue()).name == "experiment");
}

TEST_CASE("the schema documents itself, and its defaults are allowed") {
  const std::string text = schema_text();
  for (const schema_key& key : schema()) {
    CAPTURE(key.path());
    CHECK(text.find("  " + key.leaf() + " ") != std::string::npos);
    CHECK(text.find(key.rule.help) != std::string::npos);
    const json value = read(key, {}, {});
    CHECK((accept(key, value) || value == ""));
  }
  CHECK(text.find("an integer from 1 to 1048576; default 32") != std::string::npos);
  CHECK(text.find("default 0ns") != std::string::npos);
  for (const char* key : {"title", "rows", "columns", "value", "list", "ratio_to", "where", "labels", "row", "source"})
    CHECK(text.find(std::string("\n  ") + key + " ") != std::string::npos);
}
