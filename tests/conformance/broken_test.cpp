// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` finds what is broken, by the right name, and nothing beside it.
#include "../cli/program.hpp"

#include <set>

using namespace regatta::test;

namespace {

using names = std::set<std::string>;

// Runs some tests on a plugin; the names of those that failed and of those that passed.
struct findings {
  int code;
  names failed, passed;
  json document;
};

findings check(const std::string& plugin, const names& tests) {
  const scratch s;
  std::string only;
  for (const auto& t : tests) only += " --only " + t;
  // What a test leaves in its folder for temporary files goes with this one.
  const outcome o =
      program(s, "check " + plugin + " --plugin-path " BROKEN_PLUGINS " --json" + only, "TMPDIR=" + s.path.string());
  INFO(o.err);
  INFO(o.out);
  REQUIRE((o.code == 0 || o.code == 1));
  findings f{o.code, {}, {}, json::parse(o.out)};
  for (const json& subject : f.document.at("subjects"))
    for (const json& t : subject.at("tests")) {
      const std::string status = t.at("status");
      REQUIRE_MESSAGE(status != "skipped", t.dump());
      (status == "failed" ? f.failed : f.passed).insert(t.at("name").get<std::string>());
      CHECK(t.at("came").is_null() == (status == "passed"));
    }
  return f;
}

void finds(const std::string& plugin, const names& broken, const names& sound) {
  CAPTURE(plugin);
  names all = broken;
  all.insert(sound.begin(), sound.end());
  const findings f = check(plugin, all);
  CAPTURE(f.document.dump(1));
  CHECK(f.failed == broken);
  CHECK(f.passed == sound);
  CHECK(f.code == 1);
}

} // namespace

TEST_CASE("broken transports") {
  finds("transport/reorders", {"fifo"}, {"alignment", "counters"});
  finds("transport/completes_early", {"reuse"}, {"secret", "destroy"});
  finds("transport/drops_at_close", {"close"}, {"secret", "destroy"});
  finds("transport/overstates", {"short"}, {"alignment", "fifo"});
  finds("transport/takes_and_refuses", {"again"}, {"reuse", "alignment"});
  finds("transport/never_fails", {"left-peer", "too-long", "cancel"}, {"close", "alignment"});
  finds("transport/takes_anything", {"refusals"}, {"cancel", "alignment"});
  finds("transport/adds_on_arrival", {"add-order"}, {"add", "add-short"});
  finds("transport/cancels_everybody", {"cancel"}, {"close", "left-peer"});
  finds("transport/loses_last_byte", {"sizes"}, {"counters", "wake"});
  finds("transport/spins", {"idle"}, {"alignment"});
  finds("transport/counts_nothing", {"counters"}, {"alignment"});
  finds("transport/crashes_on_cancel", {"cancel"}, {"killed-peer"});
  finds("transport/leaves_a_file", {"leftovers"}, {"alignment"});
  finds("transport/refuses_a_choice", {"parameters"}, {"alignment"});
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
  finds("model/differs_a_little", {"repeat", "ready"},
        {"gradient", "need", "accumulate", "shares", "seed", "evaluate"});
}

TEST_CASE("broken strategies, and a sound one") {
  CHECK(check("strategy/sound",
              {"plan", "drain", "replicas", "serial", "clip", "buckets", "rows", "blocks", "deterministic", "ghosts"})
            .code == 0);
  finds("strategy/forgets_a_bucket", {"serial", "clip"}, {"drain", "deterministic", "blocks"});
  finds("strategy/keeps_the_sum", {"replicas", "serial", "clip"}, {"drain", "deterministic", "blocks"});
  finds("strategy/never_drains", {"drain"}, {"plan"});
  finds("strategy/sleeps", {"blocks"}, {"drain", "serial"});
  finds("strategy/talks_one_way", {"plan"}, {"drain", "serial"});
  finds("strategy/looks_at_bytes", {"ghosts"}, {"drain", "serial"});
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
