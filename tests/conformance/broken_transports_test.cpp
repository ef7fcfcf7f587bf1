// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` finds the defect of each broken transport in the right test, and reports nothing else.
#include "broken.hpp"

using namespace regatta::test;

TEST_CASE("broken transports") {
  finds_all({
      {"transport/reorders", {"fifo"}, {"alignment", "counters"}},
      {"transport/completes_early", {"reuse"}, {"secret", "destroy"}},
      {"transport/drops_at_close", {"close"}, {"secret", "destroy"}},
      {"transport/overstates", {"short"}, {"alignment", "fifo"}},
      {"transport/takes_and_refuses", {"backpressure"}, {"reuse", "alignment"}},
      {"transport/closes_nothing", {"left-peer"}, {"secret", "destroy"}},
      {"transport/never_fails", {"left-peer", "too-long", "cancel"}, {"close", "alignment"}},
      {"transport/takes_anything", {"refusals"}, {"cancel", "alignment"}},
      {"transport/cancels_everybody", {"cancel"}, {"close", "left-peer"}},
      {"transport/loses_last_byte", {"sizes", "traffic"}, {"counters", "wake"}},
      {"transport/knows_few_types", {"types"}, {"alignment", "fifo"}},
      {"transport/spins", {"idle"}, {"alignment"}},
      {"transport/counts_nothing", {"counters"}, {"alignment"}},
      {"transport/cancels_twice", {"cancel-one"}, {"cancel", "alignment"}},
      {"transport/counts_anew", {"own-counters"}, {"counters", "alignment"}},
      {"transport/crashes_on_cancel", {"cancel"}, {"killed-peer"}},
      {"transport/leaves_a_file", {"leaks"}, {"alignment"}},
      {"transport/refuses_a_choice", {"parameters"}, {"alignment"}},
      {"transport/one_way_at_a_time", {"crossing"}, {"reuse", "alignment"}},
      {"transport/one_lane_at_a_time", {"lanes"}, {"crossing", "alignment"}},
      {"transport/wants_alignment", {"alignment"}, {"counters"}},
      {"transport/mistakes_a_death", {"killed-peer", "left-peer"}, {"cancel", "close"}},
      {"transport/cannot_spin", {"spin"}, {"idle"}},
      {"transport/invents_a_completion", {"wake"}, {"spin"}},
      {"transport/has_its_own_time", {"alignment"}, {"secret"}},
  });
}

TEST_CASE("the sender of a message that is too long need not hear of it") {
  CHECK(check("transport/tells_the_receiver", {"too-long"}).passed == names{"too-long"});
}

TEST_CASE("a transport with room for one operation of each peer, lane and direction") {
  const names all{"cancel-one", "fifo", "backpressure", "close-deadline"};
  CHECK(check("transport/room_for_one", all).passed == all);
}

TEST_CASE("an error of several tests is printed once") {
  const temporary_folder s;
  const outcome o = program(s, "check transport/has_no_device --plugin-path " BROKEN_PLUGINS
                               " --only fifo --only sizes --only alignment --only crossing");
  INFO(o.out);
  CHECK(o.code == 1);
  const auto first = o.out.find("device mlx9_0 is not there");
  REQUIRE(first != std::string::npos);
  CHECK(o.out.find("every rank: listen: status") != std::string::npos);
  CHECK(o.out.find("device mlx9_0 is not there", first + 1) == std::string::npos);
  CHECK(o.out.find("one cause, 4 tests: sizes, alignment, fifo, crossing") != std::string::npos);
}

TEST_CASE("processes that hang are ended within seconds, and tests behind them are not waited for") {
  const std::string plugin = "check transport/never_returns --plugin-path " BROKEN_PLUGINS " ";
  auto several = std::async(std::launch::async, [&] { // beside the other: both wait for seconds
    const temporary_folder s;
    return program(s, plugin + "--only crossing --only alignment --only reuse");
  });
  const temporary_folder s;
  const outcome idle = program(s, plugin + "--only idle --json");
  const json t = parsed(idle.out).at("subjects").at(1).at("tests").at(0);
  CAPTURE(t);
  CHECK(t.at("status") == "failed");
  CHECK(t.at("message").get<std::string>().find("every rank: no call of the plugin returned for ") == 0);
  CHECK(t.at("seconds") < 60); // with a sanitizer; else about 13

  const outcome all = several.get();
  INFO(all.out);
  CHECK(all.code == 1);
  CHECK(all.out.find("not run after alignment, crossing hung") != std::string::npos);
}

TEST_CASE("ranks end with the program that has forked them, however it ends") {
  const temporary_folder s;
  const std::string mark = "TMPDIR=" + s.path.string();
  program(s, "check transport/never_returns --only idle --plugin-path " BROKEN_PLUGINS, mark + " timeout -s KILL 3");
  const auto ranks = [&] {
    int found = 0;
    for (const auto& process : fs::directory_iterator("/proc")) {
      std::ifstream line(process.path() / "environ");
      const std::string all{std::istreambuf_iterator<char>(line), {}};
      found += all.find(mark) != std::string::npos;
    }
    return found;
  };
  for (int i = 0; i < 500 && ranks() > 0; ++i) usleep(10'000); // SIGKILL goes from parent to child in turn
  CHECK(ranks() == 0);
}

TEST_CASE("a transport that loses what is beyond 31 bits") {
  const findings f = check("transport/counts_in_31_bits", {"2-gib", "alignment"}, {"2-gib"});
  CAPTURE(f.document);
  CHECK(f.failed == (f.skipped.empty() ? names{"2-gib"} : names{})); // there may be too little memory to ask
}

TEST_CASE("broken extensions of transports") {
  finds_all({
      {"transport/adds_on_arrival", {"add-order"}, {"add", "add-short"}},
      {"transport/adds_in_sixteens", {"add"}, {"alignment"}},
      {"transport/overstates_sums", {"add-short"}, {"add", "short"}},
      {"transport/copies_last", {"add-after-copy"}, {"add", "short"}},
      {"transport/cuts_floats", {"convert"}, {"alignment"}},
      {"transport/sums_alone", {"all-reduce", "groups", "collectives-and-messages"}, {"alignment"}},
      {"transport/used_memory", {"memory"}, {"alignment"}},
  });
}

TEST_CASE("broken beginnings and ends of transports") {
  finds_all({
      {"transport/trusts_everybody", {"secret"}, {"blobs", "absent-rank"}},
      {"transport/trusts_the_listener", {"proofs"}, {"secret", "rejected"}},
      {"transport/ignores_a_proof", {"proofs"}, {"secret"}},
      {"transport/repeats_its_proof", {"proofs"}, {"secret"}},
      {"transport/keeps_rejected", {"rejected"}, {"secret", "proofs"}},
      {"transport/waits_for_ever", {"close-deadline"}, {"close", "left-peer"}},
      {"transport/never_misses_anybody", {"secret", "proofs", "blobs", "absent-rank"}, {"alignment"}},
      {"transport/dies_unconnected", {"destroy"}, {"alignment"}},
      {"transport/nobody_and_anybody", {"alone", "no-peers"}, {}},
      {"transport/exchanges_early", {"sizes"}, {}},
  });
}

TEST_CASE("a transport that gives up at connect()'s timeout is not killed before it, and says why") {
  const auto try_test = [](const std::string& name) { return check("transport/connects_in_vain", {name}); };
  auto in_processes = std::async(std::launch::async, try_test, "idle"); // beside the other: both wait for seconds
  const findings in_threads = try_test("alignment");
  for (const findings& f : {in_threads, in_processes.get()}) {
    CAPTURE(f.document);
    CHECK(f.failed.size() == 1);
    CHECK(text_of(f.document).find("connect: status -") != std::string::npos);
    CHECK(text_of(f.document).find("the peers do not answer") != std::string::npos);
  }
}
