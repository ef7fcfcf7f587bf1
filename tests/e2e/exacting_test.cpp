// SPDX-License-Identifier: Apache-2.0
//
// What a transport need not do: it may refuse memory that was not registered and receives that overlap, and report
// completions in any order. Each strategy computes the same over such a transport as over one that orders all.
#include "program.hpp"

#include <array>

using namespace regatta::test;

TEST_CASE("strategies compute the same weights over a transport that orders nothing") {
  const temporary_folder s;
  const std::string dense = small_experiment(12), sparse = R"(
[model]
plugin = "ctr"
rows = 503
hidden = [16]
[data]
source = "random"
[train]
batch = 24
scaling = "strong"
kernels = "fixed"
[measure]
warmup = 0
steps = 12
repeats = 1
baseline = false
)";
  const std::string servers = " --set cluster.servers=2";
  for (const auto& [toml, strategy] : std::array<std::pair<std::string, std::string>, 10>{{
           {dense, "allreduce --set strategy.algorithm=ring"},
           {dense, "allreduce --set strategy.algorithm=halving_doubling --set strategy.wire=bf16"},
           {dense, "allreduce --set strategy.algorithm=sharded"},
           {dense, "sync_ps" + servers},
           {dense, "sync_ps --set strategy.wire=fp16 --set cluster.colocate=true" + servers},
           {dense, "local_sgd"},
           {dense, "dgc"},
           {dense, "sync_ps --set optimizer.clip_norm=0.1" + servers},
           {sparse, "allreduce --set strategy.algorithm=ring"},
           {sparse, "sync_ps" + servers},
       }}) {
    CAPTURE(strategy);
    const auto weights = [&](const std::string& transport) {
      const json r = results(s, toml,
                             "--set cluster.workers=3 --set transport.plugin=" + transport +
                                 " --plugin-path " REGATTA_EXACTING " --set strategy.plugin=" + strategy);
      CHECK(r.at(0).at("replicas_identical") == true);
      return r.at(0).at("weights_sha256").at(0).get<std::string>();
    };
    CHECK(weights("exacting") == weights("shm"));
  }
}

TEST_CASE("headers of shaped are in registered memory") {
  const temporary_folder s;
  const json r = results(s, small_experiment(3),
                         "--set cluster.workers=2 --set transport.plugin=shaped --set transport.over=exacting "
                         "--plugin-path " REGATTA_EXACTING);
  CHECK(r.at(0).at("replicas_identical") == true);
}
