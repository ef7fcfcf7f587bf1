// SPDX-License-Identifier: Apache-2.0
#include "optimizer/schedule.hpp"

#include "base/failure.hpp"
#include "device/host.hpp"
#include "experiment/experiment.hpp"
#include "optimizer/optimizer.hpp"

#include <cmath>
#include <functional>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace regatta;

namespace {

host_processor on_host;

schedule_config named(const char* name) {
  schedule_config c;
  c.name = name;
  return c;
}

void check(const schedule_config& c, const std::function<double(double t)>& expected) {
  const schedule s(c);
  for (std::uint64_t t = 0; t < 200; ++t) {
    CAPTURE(c.name);
    CAPTURE(t);
    CHECK(s.at(t) == doctest::Approx(expected(static_cast<double>(t))).epsilon(1e-12));
  }
}

std::string refusal(const schedule_config& c) {
  try {
    schedule s(c);
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::usage);
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("every schedule is its formula") {
  check(named("constant"), [](double) { return 1.0; });

  schedule_config step = named("step");
  step.milestones = {30, 60, 80};
  step.warmup = 5;
  check(step, [](double t) { return t < 4 ? (t + 1) / 5 : t < 30 ? 1 : t < 60 ? 0.1 : t < 80 ? 0.01 : 0.001; });

  schedule_config linear = named("linear");
  linear.warmup = 10;
  linear.start = 0.25;
  linear.length = 110;
  linear.end = 0.1;
  check(linear, [](double t) {
    return t < 10 ? 0.25 + 0.75 * (t + 1) / 10 : t < 110 ? 1 - 0.9 * (t + 1 - 10) / 100 : 0.1;
  });

  schedule_config exponential = named("exponential");
  exponential.factor = 0.5;
  exponential.every = 7;
  check(exponential, [](double t) { return std::pow(0.5, std::floor(t / 7)); });

  schedule_config noam = named("noam");
  noam.model_size = 64;
  noam.warmup = 40;
  check(noam, [](double t) { return std::min(1 / std::sqrt(t + 1), (t + 1) / std::pow(40, 1.5)) / 8; });
}

TEST_CASE("lengths in epochs are lengths in steps times the steps of an epoch") {
  schedule_config c = named("step");
  c.unit = "epoch";
  c.milestones = {1, 2};
  c.warmup = 0.5;
  c.epoch_steps = 12.5; // milestones at steps 12.5 and 25
  check(c, [](double t) { return t < 6 ? (t + 1) / 6.25 : t < 12.5 ? 1 : t < 25 ? 0.1 : 0.01; });
  c.epoch_steps = 0;
  CHECK(refusal(c).find("no epochs") != std::string::npos);
}

TEST_CASE("an incomplete or unknown schedule is refused with its key") {
  CHECK(refusal(named("step")).starts_with("optimizer.schedule.milestones: expected"));
  CHECK(refusal(named("linear")).starts_with("optimizer.schedule.length: expected"));
  CHECK(refusal(named("exponential")).starts_with("optimizer.schedule.every: expected"));
  CHECK(refusal(named("noam")).starts_with("optimizer.schedule.warmup: expected"));
  CHECK(refusal(named("cosine")).starts_with("optimizer.schedule.name: expected"));
}

TEST_CASE("the optimiser's rate at a step is lr times the workers times the schedule, clipped or not") {
  optimizer_config c;
  c.plugin = "sgd";
  c.lr = 0.5;
  c.lr_scaling = "linear";
  c.schedule = named("exponential");
  c.schedule.every = 2;
  c.schedule.factor = 0.5;
  for (const double clip : {0.0, 1e9}) {
    c.clip_norm = clip;
    optimizer o(c, 3, {{0, 1, 1, 1}}, on_host);
    float w = 0;
    o.own(0, 1, &w);
    const float g = -1;
    double expected = 0;
    for (std::uint64_t t = 0; t < 7; ++t) {
      o.apply(0, {&g, 1}, t);
      double norm[2];
      o.partial(norm);
      if (o.deferred()) CHECK(o.commit({norm[0], norm[1]}, t));
      expected += 1.5 * std::pow(0.5, static_cast<double>(t / 2));
      CHECK(static_cast<double>(w) == doctest::Approx(expected).epsilon(1e-6));
    }
  }
}
