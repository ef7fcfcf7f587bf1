// SPDX-License-Identifier: Apache-2.0
//
// Plugins that crash while they describe themselves, or describe something impossible: they are named, and other
// plugins still work.
#include "processes.hpp"

#include <map>

using namespace regatta::test;

namespace {

const std::string options = " --progress never --plugin-path " REGATTA_LIAR " ";

const std::string small = R"(
[model]
plugin = "liar"
[cluster]
workers = 2
[train]
batch = 4
[strategy]
plugin = "allreduce"
[transport]
plugin = "shm"
[measure]
warmup = 1
steps = 2
repeats = 1
baseline = false
)";

// By mistake: what is said, which names the plugin, the tensor and the field.
const std::map<std::string, std::string> wrong_models = {
    {"ndim", "model liar: tensor 1 (bias): ndim is 9, 8 is the most"},
    {"shape zero", "model liar: tensor 1 (bias): shape[0] is 0: a dimension is 1 or more"},
    {"shape null", "model liar: tensor 1 (bias): ndim is 1, but shape is null"},
    {"shape negative", "model liar: tensor 1 (bias): shape[0] is -5"},
    {"overflow", "model liar: tensor 1 (bias): shape is [4294967296, 4294967296]: that overflows"},
    {"kind", "model liar: tensor 1 (bias): kind is 9"},
    {"type", "model liar: tensor 1 (bias): type is 4"},
    {"gradient_type", "model liar: tensor 1 (bias): gradient_type is 3: set it to 0 or RG_F32"},
    {"storage", "model liar: tensor 1 (bias): storage is 3: it takes 16 elements or more"},
    {"max_rows", "model liar: tensor 1 (bias): max_rows is 17: the table has 16 rows"},
    {"tensor name null", "model liar: tensor 1: name is null"},
    {"tensor name twice", "model liar: tensor 1 (weight): name is that of another tensor"},
    {"tensor count", "model liar: tensor_count is 4000000000"},
    {"tensors null", "model liar: tensor_count is 2, but tensors is null"},
    {"input name null", "model liar: input 0: name is null"},
    {"input name twice", "model liar: input 1 (x): name is that of another input"},
    {"input ndim", "model liar: input 0 (x): ndim is 99, 8 is the most"},
    {"input shape", "model liar: input 0 (x): shape[0] is 0"},
    {"tokens index", "model liar: tokens_input is 2: set it to 1 + the index of an input"},
    {"tokens kind", "model liar: tokens_input is 1: set it to 1 + the index of an input"},
    {"tokens type", "model liar: tokens_input is 1: set it to 1 + the index of an input"},
    {"unit null", "model liar: unit is null"},
    {"layout null", "model liar: layout is null"},
};

// ... and how it breaks, with the file in which it does.
const std::map<std::string, std::string> broken_models = {
    {"crash in create", "liar.so) was killed by SIGSEGV while it was described: a bug of the plugin"},
    {"crash in describe", "liar.so) was killed by SIGSEGV while it was described: a bug of the plugin"},
    {"crash in destroy", "liar.so) was killed by SIGSEGV while it was ended: a bug of the plugin"},
    {"exit in create", "liar.so) ended the process while it was described: a bug of the plugin"},
    {"throw in create", "model liar: create gave up"},
    {"throw in describe", "model liar: describe gave up"},
};

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

// Runs `key` through all mistakes and then what is sound; each must have failed with its text, and the sound case run.
void fails_by_case(const std::string& key, const std::map<std::string, std::string>& mistakes, const std::string& sound,
                   const std::string& toml) {
  const temporary_folder s;
  std::string values;
  for (const auto& [mistake, said] : mistakes) values += '"' + mistake + "\", ";
  std::ofstream(s.path / "x.toml") << toml << "[sweep]\n\"" << key << "\" = [" << values << '"' << sound << "\"]\n";
  const outcome o = program(s, "run x.toml --out r --format json" + options);
  INFO(o.err);
  CHECK(o.code == 3);
  const json r = parsed(o.out).at("results");
  REQUIRE(r.size() == mistakes.size() + 1);
  for (const json& e : r) {
    const std::string mistake = e.at("case").at(key);
    CAPTURE(mistake);
    CHECK(e.at("status") == (mistake == sound ? "ok" : "failed"));
    if (mistake != sound) has(e.at("error"), mistakes.at(mistake));
  }
}

// A control group with 1 GiB of memory and no swap, where this machine lets one make such (v1, v2), gone at the end.
class limited_group {
public:
  limited_group() {
    const std::string name = "regatta-test-" + std::to_string(getpid());
    for (const fs::path root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      std::error_code ec;
      const bool v1 = root.filename() == "memory";
      if (!fs::exists(root / (v1 ? "memory.limit_in_bytes" : "memory.stat"), ec)) continue;
      if (!fs::create_directory(root / name, ec)) continue;
      folder = root / name;
      const auto limits = [&](const char* file) { return (std::ofstream(folder / file) << (1 << 30)).flush().good(); };
      if (limits(v1 ? "memory.limit_in_bytes" : "memory.max")) {
        limits("memory.memsw.limit_in_bytes");
        std::ofstream(folder / "memory.swap.max") << 0;
        return;
      }
      fs::remove(folder, ec);
      folder.clear();
    }
  }
  ~limited_group() {
    if (!folder.empty()) CHECK(within(patience, [&] { return rmdir(folder.c_str()) == 0; }));
  }
  fs::path folder; // empty: none can be made here
};

outcome describe(const temporary_folder& s, const std::string& name, const std::string& mistake) {
  return program(s, "describe " + name + " --plugin-path " REGATTA_LIAR " --set 'mistake=" + mistake + "'");
}

} // namespace

TEST_CASE("a model that reorders its tensors trains, but not with a strategy that reads them as matrices") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small << "[sweep]\n\"strategy.plugin\" = [\"allreduce\", \"powersgd\"]\n";
  const outcome o = program(s, "run x.toml --out r --format json" + options +
                                   "--set model.mistake=reordered "
                                   "--plugin-path " REGATTA_EXAMPLE_PLUGINS);
  INFO(o.err);
  const json r = parsed(o.out).at("results");
  REQUIRE(r.size() == 2);
  CHECK(r[0].at("status") == "ok");
  CHECK(r[1].at("status") == "skipped");
  has(r[1].at("error"),
      "model liar: expected row-major tensors, which the strategy requires, got a layout of its own of "
      "bias");
}

TEST_CASE("a model that describes itself wrongly fails its case by name, the others run") {
  fails_by_case("model.mistake", wrong_models, "none", small);
}

TEST_CASE("a model that breaks while it is described fails its case, the others run") {
  fails_by_case("model.mistake", broken_models, "none", small);
}

TEST_CASE("a single case is refused before anything starts") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  for (const char* mistake : {"crash in describe", "ndim"}) {
    CAPTURE(mistake);
    for (const std::string verb : {"run x.toml --out r", "run x.toml --dry-run"}) {
      const outcome o = program(s, verb + options + "--set 'model.mistake=" + mistake + "'");
      CHECK(o.code == 3);
      has(o.out + o.err, mistake == std::string("ndim") ? wrong_models.at("ndim") : broken_models.at(mistake));
    }
  }
  CHECK(!fs::exists(s.path / "r"));
}

TEST_CASE("all mistakes of a model, and those of model and strategy, are said at once") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const std::string three = wrong_models.at("ndim") + "\n" + wrong_models.at("input shape");
  outcome o = program(s, "run x.toml --out r" + options + "--set model.mistake=several");
  CHECK(o.code == 3);
  has(o.err, three);
  has(o.err, "\n" + wrong_models.at("unit null"));
  has(describe(s, "model/liar", "several").err, three);
  o = program(s, "run x.toml --out r" + options +
                     "--set model.mistake=several --set strategy.plugin=liar_plan --set strategy.mistake=lanes");
  CHECK(o.code == 3);
  has(o.err, three);
  has(o.err, "\nstrategy liar_plan: plan().lanes is 100000, 256 is the most");
}

TEST_CASE("describe says the same") {
  const temporary_folder s;
  for (const auto* all : {&wrong_models, &broken_models})
    for (const auto& [mistake, said] : *all) {
      CAPTURE(mistake);
      const outcome o = describe(s, "model/liar", mistake);
      CHECK(o.code == 3);
      has(o.err, said);
    }
  CHECK(describe(s, "model/liar", "none").code == 0);
}

TEST_CASE("check says the same") {
  const temporary_folder s;
  for (const char* mistake : {"ndim", "tensor name null", "tensor count"}) {
    CAPTURE(mistake);
    const outcome o = program(
        s, std::string("check model/liar --only seed --plugin-path " REGATTA_LIAR " --set 'mistake=") + mistake + "'");
    CHECK(o.code == 1);
    has(o.out, wrong_models.at(mistake));
  }
  outcome o = program(s, "check transport/liar_net --only fifo --plugin-path " REGATTA_LIAR " --set mistake=p2p");
  CHECK(o.code == 1);
  has(o.out, "caps().p2p is 0");
  o = program(s, "check strategy/liar_plan --only drain --plugin-path " REGATTA_LIAR " --set mistake=lanes");
  CHECK(o.code == 1);
  has(o.out, "plan().lanes is 100000, 256 is the most");
}

TEST_CASE("a transport's capabilities and a strategy's plan are looked at as well") {
  const std::map<std::string, std::string> transports = {
      {"p2p", "transport liar_net: caps().p2p is 0"},
      {"memory", "transport liar_net: caps().memory is 0"},
      {"own_threads", "transport liar_net: caps().own_threads is 100000"},
      {"crash in caps", "liar.so) was killed by SIGSEGV while it was described"}};
  const std::map<std::string, std::string> strategies = {
      {"no lanes", "strategy liar_plan: plan().lanes is 0, but ranks talk"},
      {"lanes", "strategy liar_plan: plan().lanes is 100000, 256 is the most"},
      {"period", "strategy liar_plan: plan().period is 18446744073709551615 steps"},
      {"crash in plan", "liar.so) was killed by SIGSEGV while it was asked for its plan"}};
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const auto refused = [&](const std::string& part, const std::string& id, const auto& mistakes) {
    for (const auto& [mistake, said] : mistakes) {
      CAPTURE(mistake);
      outcome o = program(s, "run x.toml --out r" + options + "--set " + part + ".plugin=" + id + " --set '" + part +
                                 ".mistake=" + mistake + "'");
      CHECK(o.code == 3);
      has(o.err, said);
      o = describe(s, part + "/" + id, mistake);
      CHECK(o.code == 3);
      has(o.err, said);
    }
  };
  refused("transport", "liar_net", transports);
  refused("strategy", "liar_plan", strategies);
}

TEST_CASE("threads of a transport count as cores") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const outcome o = program(s, "run x.toml --format json" + options +
                                   "--set transport.plugin=liar_net --set 'transport.mistake=many threads'");
  CHECK(o.code == 77); // connect() of this transport is unsupported
  has(o.out, " x 1001 threads on ");
}

// The baseline runs first: the case must end as if it had found out itself.
TEST_CASE("a case whose baseline cannot run on this machine is skipped, and never looks like a finished one") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const outcome o = program(s, "run x.toml --out r --format json --set measure.baseline=true" + options +
                                   " --set 'model.mistake=not supported here'");
  INFO(o.err);
  CHECK(o.code == 77);
  const json r = parsed(o.out).at("results");
  REQUIRE(r.size() == 1);
  CHECK(r.at(0).at("status") == "skipped");
  has(r.at(0).at("error"), "baseline: ");
  has(r.at(0).at("error"), "model liar");
}

TEST_CASE("out of memory: the kernel takes a rank, the case says so, and the others run") {
  const limited_group group;
  if (group.folder.empty()) {
    MESSAGE("no control group can be made here: what is read of them is tested by control_test alone");
    return;
  }
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small << "[sweep]\n\"model.mistake\" = [\"eats memory\", \"none\"]\n";
  const pid_t run = start(s, {"/bin/sh", "-c",
                              "echo $$ >" + (group.folder / "cgroup.procs").string() +
                                  " && exec " REGATTA_PROGRAM " run x.toml --out r" + options});
  int status = 0;
  REQUIRE(waitpid(run, &status, 0) == run);
  INFO(read(s.path / "err"));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  const json r = parsed(read(s.path / "r" / "result.json")).at("results");
  REQUIRE(r.size() == 2);
  CHECK(r.at(0).at("status") == "failed");
  has(r.at(0).at("error"), "killed by SIGKILL: the kernel ran out of memory (cgroup limit 1024 MiB)");
  CHECK(r.at(1).at("status") == "ok");
}

TEST_CASE("Ctrl-C ends a plugin that hangs, and the coordinator never loads one") {
  const temporary_folder s;
  // Of a sweep, so that the plugin is asked by the campaign; one case would be asked before.
  std::ofstream(s.path / "x.toml") << small << "[sweep]\n\"model.mistake\" = [\"hang in describe\", \"none\"]\n";
  const pid_t run =
      start(s, {REGATTA_PROGRAM, "run", "x.toml", "--out", "r", "--progress", "never", "--plugin-path", REGATTA_LIAR});
  const auto holds_plugin = [](pid_t p) {
    return read("/proc/" + std::to_string(p) + "/maps").find("/liar.so") != std::string::npos;
  };
  // The folder with resolved files is there: plugins were listed, and the one that is loaded now is being described.
  std::vector<pid_t> asked;
  REQUIRE(within(patience, [&] {
    asked = children_of(run);
    return fs::exists(s.path / "r" / "resolved-2.toml") && asked.size() == 1 && holds_plugin(asked[0]);
  }));
  CHECK_FALSE(holds_plugin(run));
  const auto begin = std::chrono::steady_clock::now();
  kill(run, SIGINT);
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
  // Long before the plugin's own time is up, which ends the wait as well.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(within(patience, [&] { return !alive(asked[0]); }));
}
