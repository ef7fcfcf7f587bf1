// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` and `regatta comm` find the defects of broken collectives, and report nothing else.
#include "broken.hpp"

#include <map>

using namespace regatta::test;

TEST_CASE("broken collectives") {
  const names all = {
      "all-reduce",    "reduce-scatter",     "all-gather", "broadcast", "reduce",      "gather",
      "scatter",       "all-to-all",         "barrier",    "groups",    "outstanding", "collectives-and-messages",
      "killed-member", "refused-collectives"};
  const findings sound = check("transport/sends_all", all); // the base of the broken ones
  CAPTURE(sound.document);
  CHECK(sound.passed == all);
  const findings rounded = check("transport/sends_rounded", {"all-reduce", "wire-types", "refused-collectives"});
  CAPTURE(rounded.document);
  CHECK(rounded.passed.size() == 3);
  finds("transport/wire_truncates", {"all-reduce", "wire-types"}, {"broadcast"});
  finds("transport/wire_differs", {"all-reduce", "wire-types"}, {"broadcast"});
  finds("transport/wire_sends_all", {"wire-types"}, {"all-reduce"});
  finds("transport/scatters_evenly", {"reduce-scatter"}, {"all-gather"});
  finds("transport/gathers_lines", {"all-gather"}, {"reduce-scatter"});
  finds("transport/broadcasts_from_first", {"broadcast"}, {"killed-member"});
  finds("transport/places_by_rank", {"groups"}, {"reduce-scatter"});
  finds("transport/forgets_some", {"outstanding", "collectives-and-messages"}, {"killed-member"});
  finds("transport/blames_the_collective", {"killed-member"}, {"outstanding"});
  finds("transport/takes_any_collective", {"refused-collectives"}, {"outstanding"});
  finds("transport/overwrites_beside", {"broadcast", "all-reduce"}, {"killed-member"});
  finds("transport/sums_alone", {"collectives-and-messages"}, {"alignment"});
}

TEST_CASE("regatta comm counts what collectives do wrong") {
  for (const auto& [transport, op] :
       std::map<std::string, std::string>{{"sends_all", "reducescatter,allgather,broadcast"},
                                          {"sums_alone", "allreduce"},
                                          {"scatters_evenly", "reducescatter"},
                                          {"gathers_lines", "allgather"},
                                          {"forgets_all", "broadcast"}}) {
    CAPTURE(transport);
    const temporary_folder s;
    const outcome o =
        program(s, "comm --plugin-path " BROKEN_PLUGINS " --seconds 0.002 --format json --ranks 3 --algorithm "
                   "native --min 4000B --max 4000B --transport " +
                       transport + " --op " + op);
    INFO(o.err);
    const bool sound = transport == "sends_all";
    REQUIRE(o.code == (sound ? 0 : 4));
    const json all = parsed(o.out).at("results");
    REQUIRE(!all.empty());
    for (const json& r : all) {
      CAPTURE(r);
      CHECK((r.at("wrong") == 0) == sound);
    }
  }
}
