// SPDX-License-Identifier: Apache-2.0
#include "config_catalogue.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace regatta;

TEST_CASE("two lines are an experiment") {
  const experiment e = load("[model]\nplugin = \"mlp\"\n");
  CHECK(e.name == "f");
  CHECK(e.swept.empty());
  REQUIRE(e.cases.size() == 1);
  const case_config& c = e.cases[0];
  CHECK(c.name == "f");
  CHECK(c.model.id == "mlp");
  CHECK(c.model.parameters.at("hidden") == nlohmann::json{256, 256});
  CHECK(c.model.parameters.at("dropout") == 0.5);
  CHECK(c.strategy.id == "allreduce");
  CHECK(c.strategy.parameters.at("bucket") == 4194304);
  CHECK(c.transport.id == "shm");
  CHECK(c.cluster.workers == 1);
  CHECK(c.train.batch == 32);
}
