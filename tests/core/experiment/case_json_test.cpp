// SPDX-License-Identifier: Apache-2.0
//
// A case as the JSON that its ranks receive. config_test has the way from a file to it.
#include "base/failure.hpp"
#include "experiment/schema.hpp"
#include "json.hpp"

#include <doctest/doctest.h>

using namespace regatta;

TEST_CASE("a case comes back from its JSON with every key, its plugins' parameters, and what was swept") {
  case_config c;
  c.model.id = "mlp";
  c.model.parameters = {{"hidden", {256, 64}}, {"dropout", 0.5}};
  c.strategy.parameters = {{"bucket", 4096}};
  c.transport.parameters = {{"rails", true}};
  c.train.batch = 7;
  c.optimizer.lr = 1e-300;
  c.optimizer.schedule.milestones = {30, 60.5};
  c.cluster.pin = false;
  c.swept = {{"train.batch", 7}};
  const case_config back = case_from_json(nlohmann::json::parse(to_json(c).dump()));
  CHECK(to_json(back) == to_json(c));
  CHECK(back.model.id == "mlp");
  CHECK(back.model.parameters == c.model.parameters);
  CHECK(back.strategy.parameters == c.strategy.parameters);
  CHECK(back.transport.parameters == c.transport.parameters);
  CHECK(back.train.batch == 7);
  CHECK(back.optimizer.lr == 1e-300);
  CHECK(back.optimizer.schedule.milestones == std::vector<double>{30, 60.5});
  CHECK_FALSE(back.cluster.pin);
  CHECK(back.swept == c.swept);
}

TEST_CASE("a case without one of its keys, or with one of another type, is refused") {
  const nlohmann::json whole = to_json(case_config{});
  CHECK_NOTHROW(case_from_json(whole));
  for (const schema_key& key : schema()) {
    if (key.path() == "experiment.plugin_path") continue; // it belongs to all cases of the file
    CAPTURE(key.path());
    nlohmann::json j = whole;
    j[key.section()].erase(key.leaf());
    CHECK_THROWS_AS(case_from_json(j), failure);
    j = whole;
    j[key.section()][key.leaf()] = nlohmann::json::object();
    CHECK_THROWS_AS(case_from_json(j), failure);
  }
  CHECK_THROWS_AS(case_from_json(nullptr), failure);
}
