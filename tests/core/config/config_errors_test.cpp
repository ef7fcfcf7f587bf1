// SPDX-License-Identifier: Apache-2.0
//
// The exact error texts for a wrong file: a user has nothing else to find the mistake.
#include "config_catalogue.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace regatta;

namespace {

const std::string mlp = "[model]\nplugin = \"mlp\"\n";

// The complaint about `text` after the two lines above: positions begin at line 3.
std::string after_model(const std::string& text, const overrides& o = {}) {
  return complaint(mlp + text, o);
}

} // namespace

TEST_CASE("a file that cannot be read") {
  const scratch_folder folder;
  const auto what = [&](const std::filesystem::path& file) -> std::string {
    try {
      load_experiment(file, {}, test_catalogue());
    } catch (const failure& f) {
      CHECK(f.code() == exit_code::usage);
      return f.what();
    }
    return {};
  };
  CHECK(what("/nowhere/f.toml") == "/nowhere/f.toml: error: no such file");
  CHECK(what(folder.path) == folder.path.string() + ": error: is a folder; give the TOML file in it");
}

TEST_CASE("a file that is no TOML") {
  CHECK(complaint("[model\nplugin = 1\n").starts_with("f.toml:1:7: error: "));
  CHECK(complaint("[model]\nplugin = \"mlp\"\nplugin = \"vgg16\"\n").starts_with("f.toml:3:"));
  CHECK(complaint(std::string("[model]\nplu\0gin = 1\n", 20)) == "f.toml:2:4: error: a NUL byte: this is no text file");
  CHECK(complaint("# \xc3\xa9\n# \xc3\xa9\xff\n") == "f.toml:2:4: error: not UTF-8");
  CHECK(complaint("a = \xc3\xa9\n").starts_with("f.toml:1:5: error: "));
  CHECK(complaint("\xe3\x80\x81 = 1\n").starts_with("f.toml:1:1: error: "));
  CHECK(complaint("a = \"\xed\xa0\x80\"") == "f.toml:1:6: error: not UTF-8");
  CHECK(complaint(std::string((1 << 20) + 1, '\n')) ==
        "f.toml: error: larger than 1 MiB: expected the TOML file of an experiment");
}

TEST_CASE("the one key that has no default") {
  CHECK(complaint("") == "f.toml:1:1: error: model.plugin: must be given: the id of a model (mlp, vgg16)");
  CHECK(complaint("\n[model]\n") == "f.toml:2:1: error: model.plugin: must be given: the id of a model (mlp, vgg16)");
}

TEST_CASE("values that are not what the schema expects") {
  CHECK(after_model("[train]\nbatch = \"many\"\n") ==
        "f.toml:4:9: error: train.batch: expected an integer from 1 to 1048576, got \"many\"");
  CHECK(after_model("[train]\nbatch = 0\n") ==
        "f.toml:4:9: error: train.batch: expected an integer from 1 to 1048576, got 0");
  CHECK(after_model("[train]\nbatch = 1.5\n") ==
        "f.toml:4:9: error: train.batch: expected an integer from 1 to 1048576, got 1.5");
  CHECK(after_model("[train]\nbatch = [32, 64]\n") ==
        "f.toml:4:9: error: train.batch: expected an integer from 1 to 1048576, got [32, 64]");
  CHECK(after_model("[train]\nbatch = {a = 1}\n") ==
        "f.toml:4:9: error: train.batch: expected an integer from 1 to 1048576, got a table");
  CHECK(after_model("[train]\nbatch = 1979-05-27\n") ==
        "f.toml:4:9: error: train.batch: expected an integer from 1 to 1048576, got a date or time");
  CHECK(after_model("[cluster]\npin = 1\n") == "f.toml:4:7: error: cluster.pin: expected true or false, got 1");
  CHECK(after_model("[experiment]\nname = 5\n") == "f.toml:4:8: error: experiment.name: expected a string, got 5");
  CHECK(after_model("[experiment]\nplugin_path = [1]\n") ==
        "f.toml:4:15: error: experiment.plugin_path: expected a list of strings, got [1]");
  CHECK(after_model("[experiment]\nseed = -1\n") ==
        "f.toml:4:8: error: experiment.seed: expected an integer from 0 up, got -1");
  CHECK(after_model("[optimizer]\nlr = nan\n") ==
        "f.toml:4:6: error: optimizer.lr: expected a number from 0 up, got nan");
  CHECK(after_model("[data]\nsource = \"constnat\"\n") ==
        "f.toml:4:10: error: data.source: expected one of \"constant\", \"random\", \"queue\", \"dataset\", "
        "\"stream\", got \"constnat\", "
        "did you mean \"constant\"?");
  CHECK(after_model("[data]\nsource = \"lorry\"\n") == "f.toml:4:10: error: data.source: expected one of \"constant\", "
                                                       "\"random\", \"queue\", \"dataset\", \"stream\", got \"lorry\"");
  CHECK(after_model("[cluster]\nspin = \"20\"\n") ==
        "f.toml:4:8: error: cluster.spin: expected a time in nanoseconds or such as \"50us\" from 0 to 1000000000, "
        "got \"20\"");
  CHECK(after_model("[cluster]\ninterface = \"\"\n") == "f.toml:4:13: error: cluster.interface: must not be empty");
  CHECK(after_model("[experiment]\nname = \"a/b\"\n") ==
        "f.toml:4:8: error: experiment.name: expected a name for a folder: up to 100 bytes without '/', not beginning "
        "with '.', got \"a/b\"");
}

TEST_CASE("long and strange values are quoted in one line") {
  const std::string said = after_model("[train]\nkernels = \"\"\"a\nb\\u007f" + std::string(100, 'x') + "\"\"\"\n");
  CHECK(said.find('\n') == std::string::npos);
  CHECK(said.ends_with("xxx..."));
  CHECK(after_model("[train]\nkernels = '\xc3\xa9'\n").ends_with("got \"\xc3\xa9\""));
}

TEST_CASE("names that are no keys") {
  CHECK(after_model("[train]\nbacth = 3\n") ==
        "f.toml:4:1: error: train.bacth: no such key, did you mean \"train.batch\"?");
  CHECK(after_model("[trian]\nbatch = 3\n") == "f.toml:3:2: error: trian: no such key, did you mean \"train\"?");
  CHECK(after_model("[train]\nzzz = 3\n") ==
        "f.toml:4:1: error: train.zzz: no such key; [train] has batch, batch_unit, scaling, accumulate, precision, "
        "emulate, device, executor, kernels, isa, graphs, debug");
  CHECK(complaint("workers = 3\n" + mlp) ==
        "f.toml:1:1: error: workers: no such key, did you mean \"cluster.workers\"?");
  CHECK(after_model("[train]\nworkers = 3\n") ==
        "f.toml:4:1: error: train.workers: no such key, did you mean \"cluster.workers\"?");
  CHECK(complaint("\"train.batch\" = 3\n" + mlp).starts_with("f.toml:1:1: error: \"train.batch\": no such key"));
  CHECK(complaint("xyzzy = 3\n" + mlp) ==
        "f.toml:1:1: error: xyzzy: no such key; there are experiment, model, data, train, optimizer, strategy, "
        "transport, cluster, measure, sweep, claim, report");
  CHECK(after_model("[train.batch]\nx = 1\n") ==
        "f.toml:3:1: error: train.batch: expected an integer from 1 to 1048576, got a table");
  CHECK(complaint("train = 5\n" + mlp) == "f.toml:1:9: error: train: expected a table, got 5");
  CHECK(complaint("model = \"mlp\"\n") ==
        "f.toml:1:1: error: model.plugin: must be given: the id of a model (mlp, vgg16)\n"
        "f.toml:1:9: error: model: expected a table, got \"mlp\", did you mean \"model.plugin\"?");
  CHECK(after_model("[[train]]\nbatch = 1\n").starts_with("f.toml:3:1: error: train: expected a table, got [a table]"));
}

TEST_CASE("schedules that are none") {
  const std::string table = "[optimizer.schedule]\n";
  CHECK(after_model(table + "warmpu = 3\n") ==
        "f.toml:4:1: error: optimizer.schedule.warmpu: no such key, did you mean \"optimizer.schedule.warmup\"?");
  CHECK(after_model(table + "name = \"cosine\"\n")
            .starts_with("f.toml:4:8: error: optimizer.schedule.name: expected one of"));
  CHECK(
      after_model(table + "name = \"linear\"\nwarmup = 10\nlength = 5\n") ==
      "f.toml:6:10: error: optimizer.schedule.length: expected more than the warm-up with schedule.name = \"linear\"");
  CHECK(after_model(table + "name = \"step\"\nmilestones = [3, 1]\n").find("ascending") != std::string::npos);
  CHECK(after_model(table + "unit = \"epoch\"\n") ==
        "f.toml:4:8: error: optimizer.schedule.unit: expected \"step\": data.source = \"constant\" has no epochs");
}

TEST_CASE("plugins that are not there") {
  exit_code code{};
  const std::string note = "\nnote: not loaded: /plugins/broken.so: no ELF file";
  CHECK(complaint("[model]\nplugin = \"vgg61\"\n", {}, &code) ==
        "f.toml:2:10: error: model.plugin: expected the id of a model (mlp, vgg16), got \"vgg61\", did you mean "
        "\"vgg16\"?" +
            note);
  CHECK(code == exit_code::plugin);
  CHECK(complaint(mlp + "[sweep]\n\"strategy.plugin\" = [\"none\",\n \"nine\"]\n", {}, &code) ==
        "f.toml:5:2: error: strategy.plugin: expected the id of a strategy (allreduce, geo_ps, none, sync_ps), got "
        "\"nine\", did you mean \"none\"?" +
            note);
  CHECK(code == exit_code::plugin);
  // The file is wrong too: that comes first.
  CHECK(complaint("[model]\nplugin = \"vgg61\"\n[train]\nbatch = 0\n", {}, &code) != "");
  CHECK(code == exit_code::usage);
  CHECK(after_model("[transport]\nplugin = 5\n") ==
        "f.toml:4:10: error: transport.plugin: expected the id of a transport, got 5");
}

TEST_CASE("parameters of plugins") {
  CHECK(after_model("hiden = [1]\n") ==
        "f.toml:3:1: error: model.hiden: model \"mlp\" has no such parameter, did you mean \"hidden\"?");
  CHECK(after_model("zzzzzz = [1]\n") ==
        "f.toml:3:1: error: model.zzzzzz: model \"mlp\" has no such parameter; it has hidden, dropout");
  CHECK(after_model("hidden = [1, 2.5]\n") ==
        "f.toml:3:10: error: model.hidden: expected a list of integers, got [1, 2.5]");
  CHECK(after_model("[transport]\nlinger = 5\n") ==
        "f.toml:4:1: error: transport.linger: transport \"shm\" has no such parameter; if it is meant for another, "
        "write it under [transport.tcp]");
  CHECK(after_model("[strategy]\nplugin = \"none\"\nqqqqqq = 5\n") ==
        "f.toml:5:1: error: strategy.qqqqqq: strategy \"none\" has no such parameter: it has none");
  CHECK(after_model("[strategy]\nplugin = \"geo_ps\"\n") ==
        "f.toml:4:10: error: strategy.k: must be given for strategy \"geo_ps\": an integer from 1 to 10000 (for a "
        "test)");
  CHECK(after_model("[strategy]\nbucket = \"64kb\"\n") ==
        "f.toml:4:10: error: strategy.bucket: expected a size in bytes or such as \"64KiB\" from 1024 to 1073741824, "
        "got \"64kb\"");
  CHECK(complaint("[model]\nplugin = \"vgg16\"\ninput = \"flower\"\n") ==
        "f.toml:3:9: error: model.input: expected one of \"cifar10\", \"flowers\", got \"flower\", did you mean "
        "\"flowers\"?");
  CHECK(
      after_model("[strategy.allreduce]\nbucket = 3\n").starts_with("f.toml:4:10: error: strategy.allreduce.bucket: "));
  CHECK(after_model("[strategy.allreduce.bucket]\nx = 3\n")
            .ends_with("expected a size in bytes or such as \"64KiB\" from 1024 to 1073741824, got a table"));
}

TEST_CASE("tables named after what is no id") {
  CHECK(after_model("[strategy.geo]\nk = 5\n") ==
        "f.toml:3:11: error: strategy.geo: expected a parameter or the id of a strategy (allreduce, geo_ps, none, "
        "sync_ps), got the table \"geo\", did you mean \"geo_ps\"?");
  CHECK(after_model("[strategy.sync_sp]\n").ends_with("got the table \"sync_sp\", did you mean \"sync_ps\"?"));
}

TEST_CASE("a parameter that only one of the swept ids knows belongs into that one's table") {
  CHECK(after_model("[strategy]\nk = 5\n[sweep]\n\"strategy.plugin\" = [\"geo_ps\", \"none\", \"allreduce\"]\n") ==
        "f.toml:4:1: error: strategy.k: strategy \"none\" has no such parameter; if it is meant for another, write it "
        "under [strategy.geo_ps]\n"
        "f.toml:4:1: error: strategy.k: strategy \"allreduce\" has no such parameter; if it is meant for another, "
        "write it under [strategy.geo_ps]");
}

TEST_CASE("sweeps") {
  CHECK(after_model("[sweep]\n\"train.bach\" = [1]\n") ==
        "f.toml:4:1: error: train.bach: no such key, did you mean \"train.batch\"?");
  CHECK(after_model("[sweep]\n\"batch\" = [1]\n") ==
        "f.toml:4:1: error: batch: no such key, did you mean \"train.batch\"?");
  CHECK(after_model("[sweep]\n\"train.batch\" = [1,\n  \"two\", 3,\n 0]\n") ==
        "f.toml:5:3: error: train.batch: expected an integer from 1 to 1048576, got \"two\"\n"
        "f.toml:6:2: error: train.batch: expected an integer from 1 to 1048576, got 0");
  CHECK(after_model("[sweep]\n\"train.batch\" = 5\n") ==
        "f.toml:4:17: error: train.batch: expected a list of values to sweep, got 5");
  CHECK(after_model("[sweep]\n\"train.batch\" = []\n") ==
        "f.toml:4:17: error: train.batch: expected a list of values to sweep, got []");
  CHECK(after_model("[sweep]\n\"experiment.name\" = [\"a\"]\n") ==
        "f.toml:4:1: error: experiment.name: cannot be swept");
  CHECK(after_model("[sweep]\n\"model.hidden\" = [[1],\n[\"x\"]]\n") ==
        "f.toml:5:1: error: model.hidden: expected a list of integers, got [\"x\"]");
  CHECK(after_model("[sweep]\n\"strategy.geo.k\" = [5]\n").starts_with("f.toml:4:1: error: strategy.geo.k: "));
  CHECK(complaint("sweep = 1\n" + mlp) == "f.toml:1:9: error: sweep: expected a table, got 1");
}

TEST_CASE("keys in step") {
  CHECK(after_model("[[sweep.zip]]\n\"train.batch\" = [1, 2]\n\"cluster.workers\" = [1, 2, 3]\n") ==
        "f.toml:5:1: error: cluster.workers: expected 2 values, as many as train.batch has, got 3");
  CHECK(after_model("[sweep]\nzip = 5\n") ==
        "f.toml:4:7: error: sweep.zip: expected tables, each under [[sweep.zip]], got 5");
  CHECK(after_model("[sweep]\n\"train.batch\" = [1]\n[[sweep.zip]]\n\"train.batch\" = [2]\n") ==
        "f.toml:6:1: error: train.batch: is swept twice");
  CHECK(after_model("[[sweep.zip]]\n\"train.batch\" = [1]\ntrain.batch = [2]\n") ==
        "f.toml:5:7: error: train.batch: is swept twice");
}

TEST_CASE("settings that contradict each other are refused") {
  CHECK(after_model("[train]\nbatch = 32\nscaling = \"strong\"\n[cluster]\nworkers = 3\n") ==
        "f.toml:4:9: error: train.batch: expected a multiple of cluster.workers (3) with train.scaling = \"strong\", "
        "got 32");
  CHECK(after_model("[train]\nbatch = 32\naccumulate = 5\n") ==
        "f.toml:4:9: error: train.batch: expected a multiple of train.accumulate (5), got 32");
  CHECK(after_model("[train]\nscaling = \"strong\"\naccumulate = 5\n[cluster]\nworkers = 2\n") ==
        "f.toml:3:1: error: train.batch: expected a multiple of cluster.workers x train.accumulate (2 x 5) with "
        "train.scaling = \"strong\", got 32");
  CHECK(after_model("[data]\nsource = \"dataset\"\n") ==
        "f.toml:4:10: error: data.format: must be given with data.source = \"dataset\": one of \"cifar10\", \"npy\", "
        "\"imagenet\", \"criteo\", \"words\", \"sentences\", \"parallel\", \"queries\"\n"
        "f.toml:4:10: error: data.path: must be given with data.source = \"dataset\": a file or a folder");
}

TEST_CASE("bounds that are not allowed themselves") {
  CHECK(after_model("[optimizer]\nplugin = \"adam\"\nbeta1 = 1\nbeta2 = 1.0\nepsilon = 0\n") ==
        "f.toml:5:9: error: optimizer.beta1: expected a number from 0 to below 1, got 1\n"
        "f.toml:6:9: error: optimizer.beta2: expected a number from 0 to below 1, got 1.0\n"
        "f.toml:7:11: error: optimizer.epsilon: expected a number above 0, got 0");
  CHECK(after_model("[optimizer]\nplugin = \"adam\"\nbeta1 = 0\nbeta2 = 0.9999999\nepsilon = 1e-300\n") == "");
  // Every step is kept in memory.
  CHECK(after_model("[measure]\nsteps = 1_000_000_000\nwarmup = 100_000_001\n") ==
        "f.toml:4:9: error: measure.steps: expected an integer from 1 to 100000000, got 1000000000\n"
        "f.toml:5:10: error: measure.warmup: expected an integer from 0 to 100000000, got 100000001");
}

TEST_CASE("tables of plugins that are not chosen are checked, too") {
  CHECK(after_model("[strategy.geo_ps]\nk = -1\n") ==
        "f.toml:4:5: error: strategy.geo_ps.k: expected an integer from 1 to 10000, got -1");
  CHECK(after_model("[strategy.geo_ps]\nnonsense = 1\n") ==
        "f.toml:4:1: error: strategy.geo_ps.nonsense: strategy \"geo_ps\" has no such parameter; it has k");
  CHECK(after_model("[sweep]\n\"strategy.geo_ps.k\" = [1, 0]\n") ==
        "f.toml:4:27: error: strategy.geo_ps.k: expected an integer from 1 to 10000, got 0");
  // Once, also where it is chosen.
  CHECK(after_model("[strategy]\nplugin = \"geo_ps\"\n[strategy.geo_ps]\nk = -1\n") ==
        "f.toml:6:5: error: strategy.geo_ps.k: expected an integer from 1 to 10000, got -1");
}

TEST_CASE("data that is not there") {
  const std::string npy = "[data]\nsource = \"dataset\"\nformat = \"npy\"\n";
  CHECK(after_model(npy + "path = \"/nowhere\"\nevaluation_path = \"/no where\"\n") ==
        "f.toml:6:8: error: data.path: expected a file or a folder, got \"/nowhere\", which is not there; "
        "paths start at the file's folder, those of --set at the working directory\n"
        "f.toml:7:19: error: data.evaluation_path: expected a file or a folder, got \"/no where\", which is not there; "
        "paths start at the file's folder, those of --set at the working directory");
  CHECK(after_model("[data]\nsource = \"queue\"\nqueue_source = \"dataset\"\nformat = \"npy\"\npath = \"/nowhere\"\n")
            .starts_with("f.toml:7:8: error: data.path: "));
  CHECK(after_model(npy + "path = \".\"\n") == "");
  CHECK(after_model("[data]\npath = \"/nowhere\"\n") == ""); // it is not read
  CHECK(after_model("[data]\nevaluation_path = \".\"\n").starts_with("f.toml:4:19: error: data.format: must be given"));
  CHECK(after_model("[measure]\ntarget = 0.9\n") ==
        "f.toml:4:10: error: measure.target: expected data.evaluation_path beside it, got 0.9 and nothing to evaluate "
        "on: give a file or a folder there, or leave the target out");
  const std::string both = "[data]\nevaluation_path = \"/usr\"\nformat = \"npy\"\n[measure]\ntarget = 0.9\n";
  CHECK(after_model(both + "precision = 0.02\n")
            .starts_with("f.toml:8:13: error: measure.precision: expected measure.repeats in its place"));
}

TEST_CASE("TOML on which the parser gives up is named by its line") {
  CHECK(complaint("a = 1\n\n[\xc3\xa9]\nb = 2\n").starts_with("f.toml:3:1: error: malformed TOML"));
  CHECK(complaint("a = 1\nb = 1979-05-27T:32:00Z\n").starts_with("f.toml:2:"));
}

TEST_CASE("keys that make no difference are named") {
  const auto notices = [](const std::string& text, const overrides& o = {}) {
    const scratch_folder folder;
    std::string all;
    for (const std::string& n : load_experiment(folder.write("f.toml", mlp + text), o, test_catalogue()).notices)
      all += n.substr(n.starts_with("notice") ? 0 : folder.path.string().size() + 1) + "\n";
    return all;
  };
  CHECK(notices("") == "");
  CHECK(notices("[optimizer]\nmomentum = 0.8\nlr = 0.1\n") == "");
  CHECK(notices("[optimizer]\nplugin = \"sgd\"\nmomentum = 0.8\n") ==
        "f.toml:5:1: notice: optimizer.momentum has no effect with optimizer.plugin = \"sgd\"\n");
  CHECK(notices("[optimizer]\nmomentum = 0.8\n[sweep]\n\"optimizer.plugin\" = [\"sgd\", \"adam\"]\n") ==
        "f.toml:4:1: notice: optimizer.momentum has no effect with optimizer.plugin = \"sgd\", \"adam\"\n");
  CHECK(notices("[optimizer]\nmomentum = 0.8\n[sweep]\n\"optimizer.plugin\" = [\"sgd\", \"momentum\"]\n") == "");
  CHECK(notices("[optimizer.schedule]\nfactor = 0.5\n[data]\npath = \"/nowhere\"\n", {{"optimizer.beta1=0.5"}, {}}) ==
        "f.toml:4:1: notice: optimizer.schedule.factor has no effect with optimizer.schedule.name = \"constant\"\n"
        "f.toml:6:1: notice: data.path has no effect with data.source = \"constant\"\n"
        "notice: --set optimizer.beta1 has no effect with optimizer.plugin = \"momentum\"\n");
  CHECK(notices("[sweep]\n\"optimizer.epsilon\" = [1, 2]\n") ==
        "f.toml:4:1: notice: optimizer.epsilon has no effect with optimizer.plugin = \"momentum\"\n");
  CHECK(notices("[train]\ndevice = \"cuda\"\ngraphs = true\ndebug = \"sync\"\n") ==
        "f.toml:5:1: notice: train.graphs has no effect with train.debug = \"sync\"\n");
  CHECK(notices("[train]\ngraphs = true\ndebug = \"sync\"\n") ==
        "f.toml:4:1: notice: train.graphs has no effect with train.device = \"cpu\"\n"
        "f.toml:5:1: notice: train.debug has no effect with train.device = \"cpu\"\n");
  // Each deciding key is named with the values that decide, not with those of cases that another key decides.
  CHECK(notices("[train]\ngraphs = true\ndebug = \"sync\"\n[sweep]\n\"train.device\" = [\"cpu\", \"cuda\"]\n") ==
        "f.toml:4:1: notice: train.graphs has no effect with train.device = \"cpu\" or train.debug = \"sync\"\n");
  // A resolved file, which holds the defaults, gives none.
  CHECK(load(resolved_toml(load(mlp + "[optimizer]\nplugin = \"sgd\"\n").cases[0])).notices.empty());
}

TEST_CASE("an error that is found after loading has the place in the file") {
  const experiment e =
      load(mlp + "[cluster]\nservers = 0\n[sweep]\n\"train.batch\" = [1, 2]\n", {{"cluster.hosts=2"}, {}});
  const auto before = [&](const std::string& text) {
    const std::string said = e.cases[1].written.before(text);
    return said.substr(said.starts_with("--") ? 0 : said.find("f.toml"));
  };
  CHECK(before("cluster.servers: too few") == "f.toml:4:11: error: cluster.servers: too few");
  CHECK(before("train.batch: too large") == "f.toml:6:21: error: train.batch: too large");
  CHECK(before("cluster.hosts: too many") == "--set cluster.hosts: too many");
  CHECK(before("cluster.workers: too many") == "f.toml:3:1: error: cluster.workers: too many"); // its section
  CHECK(before("data.path: not there") == "f.toml:1:1: error: data.path: not there");
  CHECK(before("model mlp: no such depth") == "f.toml:2:10: error: model mlp: no such depth"); // the key that chose it
  CHECK(before("out of memory") == "f.toml: error: out of memory");
  CHECK(case_config{}.written.before("data.path: x") == "data.path: x");
  const experiment chosen = load(mlp, {{"strategy.plugin=sync_ps"}, {}});
  CHECK(chosen.cases[0].written.before("strategy sync_ps: no clipping") ==
        "--set strategy.plugin: strategy sync_ps: no clipping");
}

TEST_CASE("options") {
  CHECK(after_model("", {{"train.batch=many"}, {}}) ==
        "--set train.batch: expected an integer from 1 to 1048576, got \"many\"");
  CHECK(after_model("", {{"train.bacth=1"}, {}}) == "--set train.bacth: no such key, did you mean \"train.batch\"?");
  CHECK(after_model("", {{"cluster={worker = 1}"}, {}}) ==
        "--set cluster.worker: no such key, did you mean \"cluster.workers\"?");
  CHECK(after_model("", {{"batch"}, {}}) == "--set batch: expected PATH=VALUE, as in --set train.batch=64");
  CHECK(after_model("", {{"=5"}, {}}) == "--set =5: expected PATH=VALUE, as in --set train.batch=64");
  CHECK(after_model("", {{"sweep.train.batch=[5]"}, {}}) ==
        "--set sweep.train.batch: a sweep is given by --sweep PATH=VALUE,VALUE,...");
  CHECK(after_model("", {{"model.hidden=5"}, {}}) == "--set model.hidden: expected a list of integers, got 5");
  CHECK(after_model("", {{"train.kernels=\xff"}, {}}) == "--set expected UTF-8 text");
  CHECK(after_model("", {{}, {"train.batch=1,0,x"}}) ==
        "--sweep train.batch: expected an integer from 1 to 1048576, got 0\n"
        "--sweep train.batch: expected an integer from 1 to 1048576, got \"x\"");
  CHECK(after_model("", {{}, {"train.batch=1,,2"}}) == "--sweep train.batch: expected values between the commas");
  CHECK(after_model("", {{}, {"train.batch="}}) == "--sweep train.batch: expected values between the commas");
  CHECK(after_model("", {{}, {"train.batch"}}) ==
        "--sweep train.batch: expected PATH=VALUE,VALUE,..., as in --sweep train.batch=32,64");
  CHECK(after_model("", {{}, {"train.batch=1", "train.batch=2"}}) == "--sweep train.batch: is given twice");
  CHECK(after_model("", {{"train.batch=3"}, {"train.batch=1"}}) == "--sweep train.batch: is given by --set too");
  CHECK(after_model("", {{}, {"experiment.name=a,b"}}) == "--sweep experiment.name: cannot be swept");
  CHECK(after_model("", {{"train.scaling=strong"}, {"cluster.workers=1,3"}}) ==
        "f.toml:1:1: error: train.batch: expected a multiple of cluster.workers (3) with train.scaling = \"strong\", "
        "got 32");
}

TEST_CASE("all errors are shown at once, in the file's order, options last, none twice") {
  exit_code code{};
  CHECK(complaint("[train]\nbacth = 3\nprecision = \"fp8\"\n[model]\nplugin = \"mlp\"\ndropout = \"x\"\n"
                  "[sweep]\n\"train.batch\" = [1, -1]\n\"measure.steps\" = [1, 2]\n",
                  {{"cluster.pin=5"}, {}}, &code) ==
        "f.toml:2:1: error: train.bacth: no such key, did you mean \"train.batch\"?\n"
        "f.toml:3:13: error: train.precision: expected one of \"fp32\", \"tf32\", \"bf16\", \"fp16\", got \"fp8\"\n"
        "f.toml:6:11: error: model.dropout: expected a number, got \"x\"\n"
        "f.toml:8:21: error: train.batch: expected an integer from 1 to 1048576, got -1\n"
        "--set cluster.pin: expected true or false, got 5");
  CHECK(code == exit_code::usage);
}
