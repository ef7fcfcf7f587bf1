// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` finds what is broken in a model, a strategy or a file, by the right name, and nothing beside it.
#include "broken.hpp"

#include "simulation/simulation.hpp"

using namespace regatta::test;

TEST_CASE("strategies that send short messages do not run where sizes must match, others do") {
  const scratch s;
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"null\"\n[cluster]\nworkers = 2\nservers = 1\n"
                                      "[measure]\nwarmup = 0\nsteps = 3\nrepeats = 1\nbaseline = false\n";
  const auto run = [&](const std::string& strategy) {
    return program(
        s, "run x.toml --out " + strategy +
               " --plugin-path " BROKEN_PLUGINS " --set transport.plugin=exact --set strategy.plugin=" + strategy);
  };
  const outcome refused = run("sync_ps"), runs = run("allreduce");
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK(refused.err.find("strategy sync_ps cannot run over transport exact: it sends messages shorter") !=
        std::string::npos);
  INFO(runs.err);
  CHECK(runs.code == 0);
  CHECK(check("transport/exact", {"sizes", "short"}, {"short"}).failed.empty());
}

TEST_CASE("a transport that says nothing of memory is refused by name") {
  const scratch s;
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"mlp\"\n[cluster]\nworkers = 2\n";
  const outcome o =
      program(s, "run x.toml --out r --plugin-path " BROKEN_PLUGINS " --set transport.plugin=no_word_of_memory");
  INFO(o.err);
  CHECK(o.code == 3);
  CHECK(o.err.find("transport no_word_of_memory: caps().memory is 0") != std::string::npos);
}

TEST_CASE("a strategy that works on bytes is not simulated with ghosts") {
  const auto plugins = regatta::registry::of_files({BROKEN_PLUGINS "/broken_strategies.so"});
  regatta::simulation_setup x;
  x.strategy = "says_it_looks";
  x.workers = 2;
  CHECK(regatta::simulate(plugins, x).weights.size() == 2);
  x.ghosts = true;
  CHECK_THROWS_WITH(regatta::simulate(plugins, x), doctest::Contains("RG_PLAN_BYTES"));
}

TEST_CASE("broken models") {
  const names step = {"repeat", "gradient", "ready", "need", "accumulate", "shares", "allocations", "seed", "evaluate"};
  const auto finds_alone = [&](const std::string& plugin, const std::string& broken) {
    names sound = step;
    sound.erase(broken);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (broken == "allocations") return; // they bring a malloc of their own
    sound.erase("allocations");
#endif
    finds("model/" + plugin, {broken}, sound);
  };
  finds_alone("wrong_gradient", "gradient");
  finds_alone("allocates", "allocations");
  finds_alone("ready_too_early", "ready");
  finds_alone("never_asks", "need");
  finds_alone("divides_by_its_own_batch", "shares");
  finds_alone("starts_anyhow", "seed");
  finds_alone("evaluates_afresh", "evaluate");
  finds_alone("forgets_to_accumulate", "accumulate");
  finds_alone("doubles_in_bf16", "bf16");
  finds("model/turns_twice", {"layout"}, {"seed"});
  finds("model/counts_rows", {"rows"}, {"seed"});
  finds("model/differs_a_little", {"repeat", "ready"},
        {"gradient", "need", "accumulate", "shares", "seed", "evaluate"});
}

TEST_CASE("broken strategies, and a sound one") {
  CHECK(check("strategy/sound", {"plan", "drain", "replicas", "serial", "clip", "buckets", "rows", "blocks",
                                 "deterministic", "ghosts", "exact-sizes"})
            .code == 0);
  finds("strategy/forgets_a_bucket", {"serial", "clip"}, {"drain", "deterministic", "blocks"});
  finds("strategy/keeps_the_sum", {"replicas", "serial", "clip"}, {"drain", "deterministic", "blocks"});
  finds("strategy/never_drains", {"drain"}, {"plan"});
  finds("strategy/sleeps", {"blocks"}, {"drain", "serial"});
  finds("strategy/talks_one_way", {"plan"}, {"drain", "serial"});
  finds("strategy/looks_at_bytes", {"ghosts"}, {"drain", "serial"});
  finds("strategy/sums_the_first", {"buckets"}, {"serial", "replicas"});
  finds("strategy/sends_short", {"exact-sizes"}, {"drain", "serial"});
  finds("strategy/steps_back", {"trains"}, {"drain", "replicas"});
  finds("strategy/drifts", {"deterministic", "serial"}, {"drain", "blocks"});
  finds("strategy/keeps_rows", {"rows"}, {"drain", "serial", "replicas"});
}

TEST_CASE("a broken shared object") {
  finds(BROKEN_PLUGINS "/exports.so", {"symbols", "unload"}, {});
}

TEST_CASE("exit codes and what is said") {
  const scratch s;
  CHECK(program(s, "check transport/nobody").code == 3);
  CHECK(program(s, "check nowhere.so").code == 3);
  std::ofstream(s.path / "garbage.so") << "no shared object";
  CHECK(program(s, "check garbage.so").code == 3);
  CHECK(program(s, "check transport/null --only nothing-like-it").code == 2);
  CHECK(program(s, "check transport/null --set nonsense=1").code == 2);
  const outcome list = program(s, "check transport/null --list");
  CHECK(list.code == 0);
  CHECK(list.out.find("killed-peer") != std::string::npos);

  const outcome failing = program(s, "check strategy/sleeps --only blocks --plugin-path " BROKEN_PLUGINS);
  CHECK(failing.code == 1);
  CHECK(failing.out.find("FAIL  blocks") != std::string::npos);
  CHECK(failing.out.find("expected: it waits for nothing but the host") != std::string::npos);
  CHECK(failing.out.find("--only blocks --seed 1") != std::string::npos);
  CHECK(failing.out.find("--in-process") != std::string::npos);
  CHECK(program(s, "check transport/null --only alone --in-process").code == 0);
}
