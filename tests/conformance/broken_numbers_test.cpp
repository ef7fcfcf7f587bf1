// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` finds mistakes of strategies that show with some numbers of workers, gradients, buckets or networks
// only, and passes strategies that refuse some numbers of workers.
#include "broken.hpp"

using namespace regatta::test;

namespace {

// Runs the tests that must fail and those that must pass; the report must have each text.
void finds_saying(const std::string& id, const names& broken, const names& sound,
                  const std::vector<std::string>& texts) {
  const defect d{"strategy/" + id, broken, sound};
  const findings f = find(d);
  verify(d, f);
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(text_of(f.document).find(text) != std::string::npos);
  }
}

} // namespace

TEST_CASE("a strategy that averages with neighbours, and one that refuses odd numbers of workers") {
  const names all = {"plan",  "drain",  "replicas", "buckets", "mean",        "trains", "conserves", "deterministic",
                     "bound", "period", "ghosts",   "shapes",  "exact-sizes", "lanes",  "hosts"};
  CHECK(check("strategy/gossips", all).code == 0);
  const findings even = check("strategy/gossips_if_even", all);
  CHECK(even.code == 0);
  CHECK(text_of(even.document).find("clusters with 1, 3, 5, 7 workers are left out: plan() rejects them: ") !=
        std::string::npos);
}

TEST_CASE("gossip in random pairs, and mistakes of its numbers of messages and of its averages") {
  const names all = {"plan",          "drain",  "replicas", "buckets", "mean",        "trains", "conserves",
                     "deterministic", "period", "ghosts",   "shapes",  "exact-sizes", "lanes",  "hosts"};
  const findings sound = check("strategy/pairs_sound", all);
  CHECK(sound.code == 0);
  CHECK(text_of(sound.document).find("how many messages each rank sends varies from period to period") !=
        std::string::npos);
  finds_saying("pairs_take_turns", {"period"}, {"drain", "replicas", "mean", "trains", "conserves"},
               {"how many messages each rank sends repeats after 3 steps"});
  finds_saying("pairs_skip_steps", {"period"}, {"drain", "replicas", "mean", "trains", "conserves"},
               {"its ranks send 0 messages in period 2 and 2 in period 3"});
  finds_saying("pairs_uneven", {"conserves"}, {"drain", "replicas", "mean", "trains", "period"},
               {"is the matrix of averaging weights doubly stochastic?"});
  finds_saying("pairs_shrink", {"conserves"}, {"drain", "replicas", "mean", "trains", "period"},
               {"do the weights of an average add up to 1?"});
  finds_saying("gossips_by_degree", {"conserves"}, {"drain", "replicas", "mean", "trains", "bound", "period"}, {});
}

TEST_CASE("errors of a few percent that a lossy strategy never makes up for") {
  CHECK(check("strategy/int4_sound", {"drain", "replicas", "mean", "trains"}).code == 0);
  finds_saying("int4_decays", {"mean"}, {"drain", "replicas", "trains"}, {"is lost, not sent later"});
  finds_saying("int4_resets", {"mean"}, {"drain", "replicas", "trains"}, {"is lost, not sent later"});
  finds_saying("int4_overshoots", {"mean"}, {"drain", "replicas", "trains"},
               {"the steps apply 1.04 times the sum of the workers' gradients"});
}

TEST_CASE("strategies that need more than they declare, or than a transport promises") {
  finds_saying("lanes_block", {"lanes"}, {"drain", "replicas", "serial", "hosts"}, {"declare RG_PLAN_INDEPENDENT"});
  finds_saying("collectives_by_lane", {"collectives"}, {"drain", "replicas", "serial", "buckets"},
               {"do all ranks begin a group's collectives in the same order?"});
  finds_saying("hosts_differ", {"hosts"}, {"drain", "replicas", "serial", "lanes"}, {"declare RG_PLAN_EQUAL_HOSTS"});
}

TEST_CASE("mistakes of averaging that show with some workers or buckets only") {
  finds_saying("gossips_times_three", {"mean"}, {"drain", "replicas", "trains"},
               {"the steps apply 0.75 times the sum of the workers' gradients"});
  finds_saying("gossips_up_to_four", {"mean"}, {"drain", "replicas"},
               {"5 workers, ", "the steps apply 0.8 times the sum of the workers' gradients"});
  finds_saying("gossips_in_fixed_pairs", {"trains"}, {"drain", "replicas", "mean"}, {"4 workers, "});
  finds_saying("gossips_unbounded", {"bound"}, {"drain", "replicas", "mean", "trains"}, {"4 workers, "});
  finds_saying("gossips_first_bucket", {"buckets"}, {"drain", "replicas", "mean", "trains"},
               {"are all buckets exchanged in each step?"});
  finds_saying("gossips_across_lanes", {"buckets"}, {"drain", "replicas", "mean", "trains"},
               {"with lanes = 2: ", "two receives outstanding into the same "});
}

TEST_CASE("misuses of buffers and deadlocks are named") {
  finds_saying("gossips_into_one_buffer", {"drain"}, {"plan"},
               {"has two receives outstanding into the same ", "overwrites that of rank "});
  finds_saying("gossips_before_sent", {"drain"}, {"plan"}, {"changes bytes that it is sending: a send of "});
  finds_saying("gossips_send_first", {"drain"}, {"plan"},
               {"a deadlock; rank 0 (end_step of step 0) waits to send ",
                " bytes to rank 1 on lane 0, where no receive "
                "is posted for them; rank 1 ("});
}

TEST_CASE("mistakes of a compression by rank that show with some workers or gradients only") {
  CHECK(check("strategy/low_rank", {"plan", "drain", "replicas", "clip", "buckets", "mean", "trains", "deterministic",
                                    "compressible", "period", "ghosts"})
            .code == 0);
  finds_saying("low_rank_halved", {"mean"}, {"drain", "replicas", "deterministic", "compressible"}, {"4 workers, "});
  finds_saying("low_rank_forgets", {"mean"}, {"drain", "replicas", "deterministic", "compressible"}, {"4 workers, "});
  finds_saying("low_rank_vectors", {"mean", "compressible"}, {"drain", "replicas", "deterministic"}, {"4 workers, "});
  finds_saying("low_rank_of_zero", {"drain"}, {"plan"}, {"is not a number"});
  finds_saying("low_rank_draws", {"replicas"}, {"drain", "deterministic", "compressible"}, {});
  finds_saying("low_rank_kernel", {"replicas"}, {"drain", "deterministic", "compressible"}, {});
  finds_saying("low_rank_clock", {"deterministic"}, {"plan", "drain"}, {"with other latencies and another straggler"});
}
