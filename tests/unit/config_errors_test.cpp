// SPDX-License-Identifier: Apache-2.0
//
// What is said about a wrong file, to the letter: the words are what a user has to go by.
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
  CHECK(what(folder.path()) == folder.path().string() + ": error: is a folder; give the TOML file in it");
}

TEST_CASE("a file that is no TOML") {
  CHECK(complaint("[model\nplugin = 1\n").starts_with("f.toml:1:7: error: "));
  CHECK(complaint("[model]\nplugin = \"mlp\"\nplugin = \"vgg16\"\n").starts_with("f.toml:3:"));
  CHECK(complaint(std::string("[model]\nplu\0gin = 1\n", 20)) == "f.toml:2:4: error: a NUL byte: this is no text file");
  CHECK(complaint("# \xc3\xa9\n# \xc3\xa9\xff\n") == "f.toml:2:4: error: not UTF-8");
  CHECK(complaint("a = \xc3\xa9\n").starts_with("f.toml:1:5: error: "));
  CHECK(complaint("\xe3\x80\x81 = 1\n").starts_with("f.toml:1:1: error: "));
  CHECK(complaint("a = \"\xed\xa0\x80\"") == "f.toml:1:6: error: not UTF-8");
  CHECK(complaint(std::string((1 << 20) + 1, '\n')) == "f.toml: error: larger than 1 MiB: this is no experiment");
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
        "with a point, got \"a/b\"");
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
        "emulate, device, kernels, graphs");
  CHECK(complaint("workers = 3\n" + mlp) ==
        "f.toml:1:1: error: workers: no such key, did you mean \"cluster.workers\"?");
  CHECK(after_model("[train]\nworkers = 3\n") ==
        "f.toml:4:1: error: train.workers: no such key, did you mean \"cluster.workers\"?");
  CHECK(complaint("\"train.batch\" = 3\n" + mlp).starts_with("f.toml:1:1: error: \"train.batch\": no such key"));
  CHECK(complaint("xyzzy = 3\n" + mlp) ==
        "f.toml:1:1: error: xyzzy: no such key; there are experiment, model, data, train, optimizer, strategy, "
        "transport, cluster, measure, sweep, report");
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

TEST_CASE("what does not go together") {
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
  CHECK(after_model("[report]\nrows = \"train.bacth\"\n") ==
        "f.toml:4:8: error: report.rows: expected a key such as \"train.batch\", got \"train.bacth\"");
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
