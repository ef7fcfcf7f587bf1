// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/failure.hpp"
#include "clocks/clock_course.hpp"
#include "report/stragglers_table.hpp"
#include "results/campaign_records.hpp"
#include "results/case_entry.hpp"
#include "results/hosts_entry.hpp"

using namespace regatta;
using doctest::Approx;
using nlohmann::json;

namespace {

run_figures run_with(const std::vector<double>& compute, const std::vector<std::optional<double>>& last) {
  run_figures f;
  for (std::size_t w = 0; w < compute.size(); ++w)
    f.paces.push_back({static_cast<std::int32_t>(w), w < 2 ? "n0" : "n1", compute[w], last[w]});
  f.samples_per_second = 10;
  f.samples_per_worker_step = 10;
  f.step_seconds = {{1}};
  f.losses = {1};
  f.loss_steps = {0};
  f.loss_seconds = {std::nullopt};
  return f;
}

const json& held_back(const json& entry) {
  return entry.at("held_back_by");
}

json entry_of(const run_figures& f) {
  case_config config;
  return case_entry(config, {}, "ok", "", {{f, {}, {}, {}, {}, {}}});
}

} // namespace

TEST_CASE("a slow worker that is often the last one holds the others back") {
  const run_figures slow = run_with({0.10, 0.11, 0.13}, {0.1, 0.1, 0.8});
  const json e = stragglers_entry({&slow});
  CHECK(held_back(e) == 2);
  CHECK(e["ranks"][2] == json{{"rank", 2}, {"host", "n1"}, {"compute_seconds", 0.13}, {"last", 0.8}});
  const run_figures seldom = run_with({0.10, 0.11, 0.13}, {0.3, 0.2, 0.5});
  CHECK(held_back(stragglers_entry({&seldom})).is_null());
  const run_figures near = run_with({0.10, 0.11, 0.115}, {0, 0, 1});
  CHECK(held_back(stragglers_entry({&near})).is_null()); // less than 10 % above the median of the others
  const run_figures unknown = run_with({0.10, 0.11, 0.13}, {{}, {}, {}});
  CHECK(held_back(stragglers_entry({&unknown})) == 2); // as far as it is known
  CHECK(stragglers_entry({&unknown})["ranks"][0]["last"].is_null());
}

TEST_CASE("stragglers of a case are those of all repeats") {
  const run_figures a = run_with({0.10, 0.20}, {0, 1}), b = run_with({0.10, 0.10}, {0.5, 0.5}),
                    c = run_with({0.12, 0.18}, {0, 1});
  const json e = stragglers_entry({&a, &b, &c});
  CHECK(e["ranks"][1]["compute_seconds"] == 0.18);
  CHECK(e["ranks"][1]["last"].get<double>() == Approx(2.5 / 3));
  CHECK(held_back(e) == 1);
  const run_figures alone = run_with({0.1}, {1});
  CHECK(stragglers_entry({&alone}).is_null());
  CHECK(stragglers_entry({&a, &alone}).is_null());
}

TEST_CASE("time that is not told apart is null, with its sum") {
  time_parts apart{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}, joined = apart;
  joined.blocked = 1;
  joined.wait = joined.exposed_communication = 0;
  CHECK(time_entry(apart)["wait"] == 0.6);
  CHECK_FALSE(time_entry(apart).contains("blocked"));
  const json j = time_entry(joined);
  CHECK(j["wait"].is_null());
  CHECK(j["exposed_communication"].is_null());
  CHECK(j["blocked"] == 1);
  CHECK(j["input"] == 0.1);
  const time_parts mean = mean_parts({apart, joined});
  CHECK(mean.blocked == Approx(1.05));
  CHECK(mean.wait == 0);
  CHECK(mean.total() == Approx((apart.total() + joined.total()) / 2));
  CHECK(mean_parts({apart}).wait == 0.6);
}

TEST_CASE("an entry has the clocks of its worst repeat, and warns if they are not known well enough") {
  run_figures good = run_with({0.1, 0.1, 0.1}, {0, 0, 1}), bad = good;
  good.time.wait = bad.time.blocked = 0.1;
  good.places = bad.places = {{"n0", 0}, {"n0", std::nullopt}, {"n1", 1}};
  good.clocks = {{{"n0", {}, {}, 1000}, {"n1", {5e12, 2000}, {5e12 + 100, 3000}, 4000}}, 5e-6, ""};
  bad.clocks = good.clocks;
  bad.clocks.uncertainty_seconds = 5e-3;
  bad.clocks.reason = "why";
  CHECK(clocks_entry({&bad, &good})["uncertainty_seconds"] == 5e-3);
  const json e = clocks_entry({&good});
  CHECK(e["reason"].is_null());
  CHECK(e["hosts"][1]["ahead_seconds"]["begin"].get<double>() == Approx(5000));
  CHECK(e["hosts"][1]["uncertainty_seconds"]["largest"].get<double>() == Approx(4e-6));
  const run_figures single = run_with({0.1}, {1});
  CHECK(clocks_entry({&single}).is_null());

  const json entry = entry_of(bad);
  CHECK(entry["clocks"]["reason"] == "why");
  CHECK(entry["time"]["wait"].is_null());
  CHECK(entry["hosts"] == json{{{"host", "n0"}, {"numa_node", 0}},
                               {{"host", "n0"}, {"numa_node", nullptr}},
                               {{"host", "n1"}, {"numa_node", 1}}});
  CHECK(entry["warnings"].dump().find("wait and exposed_communication are not told apart: why") != std::string::npos);
  CHECK(entry_of(good)["warnings"].dump().find("told apart") == std::string::npos);
}

TEST_CASE("the clocks of a run's record give the same figures when the campaign is read again") {
  constexpr std::int64_t ms = 1'000'000, ahead = 5'000'000 * ms;
  experiment e;
  e.cases = {{}};
  e.cases[0].cluster.workers = 2;
  finished_run run;
  run.role = "case";
  run.round = 1;
  run.plugins = json::object();
  run.ranks = json::array();
  for (const int w : {0, 1}) {
    rank_record r;
    r.rank = r.worker = w;
    r.host = w ? "n1" : "n0";
    r.numa_node = w;
    step_time t;
    t.begin = r.region_begin = w * ahead;
    t.backward = (w ? 14 : 10) * ms;
    t.compute_end = t.begin + t.backward;
    t.end = r.region_end = t.begin + 17 * ms;
    t.blocked = t.end - t.compute_end;
    r.steps = {t};
    r.samples = 10;
    run.ranks.push_back(to_json(r));
  }
  for (const timed_host& host : {timed_host{"n0", {{{0, {0, 1000}}}}}, timed_host{"n1", {{{ahead, {ahead, 1000}}}}}})
    run.hosts.push_back(to_json(host));
  const json record = json::parse(run_record(e, 1, run).dump());
  campaign_records records(e);
  records.add(record);
  const run_figures& f = records.of_case(0).repeats.at(0).figures.run;
  CHECK(f.clocks.reason.empty());
  CHECK(f.time.wait == Approx(0.002));
  CHECK(f.time.exposed_communication == Approx(0.003));
  CHECK(f.paces[1].last == 1.0);
  CHECK(f.places[1].numa_node == 1);
  experiment on_devices = e;
  on_devices.cases[0].train.device = "cuda";
  campaign_records of_devices(on_devices);
  of_devices.add(record);
  CHECK_FALSE(of_devices.of_case(0).repeats.at(0).figures.run.paces[1].last); // whenever its backward passes ended
  json damaged = record;
  damaged["hosts"][1]["clock"][0] = "x";
  CHECK_THROWS_AS(campaign_records(e).add(damaged), failure);
  damaged.erase("hosts");
  CHECK_THROWS_AS(campaign_records(e).add(damaged), failure);
}

TEST_CASE("the table of stragglers has the slowest ranks and the fastest one of cases that are held back") {
  const run_figures equal = run_with({0.10, 0.10}, {0.5, 0.5});
  json result{{"results", {entry_of(equal)}}};
  CHECK(table_of_stragglers(result).rows.empty());
  std::vector<double> compute{0.10, 0.11, 0.12, 0.11, 0.10, 0.30, 0.09};
  const run_figures slow = run_with(compute, {0, 0, 0, 0, 0, 1, 0});
  result["results"] = {entry_of(slow)};
  text_table table = table_of_stragglers(result);
  REQUIRE(table.rows.size() == 5);
  CHECK(table.rows[0].cells == std::vector<std::string>{"5", "n1", "300.0 ms", "100 %"});
  CHECK(table.rows[1].cells[0] == "2");
  CHECK(table.rows[4].cells[0] == "6"); // the fastest
  result["results"].push_back(entry_of(equal));
  table = table_of_stragglers(result);
  CHECK(table.columns.front().header == "held back");
  CHECK(table.rows.size() == 5);
  CHECK(table.rows[1].cells.front().empty());
}
