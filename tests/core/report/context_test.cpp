// SPDX-License-Identifier: Apache-2.0
#include "report/context.hpp"

#include "json.hpp"
#include "machine/host.hpp"

#include <limits>

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;
using nlohmann::json;

TEST_CASE("the context says where and how") {
  const json host = describe_host(std::numeric_limits<double>::infinity());
  for (const char* name :
       {"name", "cpu", "cores", "memory_bytes", "cgroup_cpus", "governor", "gpus", "interfaces", "kernel", "libraries"})
    CHECK_MESSAGE(host.contains(name), name);
  CHECK(host["cores"] >= 1);
  CHECK(host["memory_bytes"] > 1 << 20);
  CHECK(host["cgroup_cpus"].is_null());
  CHECK(describe_host(1.5)["cgroup_cpus"] == 1.5);
  experiment e;
  e.name = "sweep";
  e.file = "a.toml";
  e.swept = {"train.batch", "cluster.workers"};
  for (const int batch : {64, 32})
    for (const int workers : {1, 2}) {
      case_config& c = e.cases.emplace_back();
      c.strategy.id = "allreduce";
      c.transport.id = "shm";
      c.swept = {{"train.batch", batch}, {"cluster.workers", workers}};
    }
  e.cases[0].transport.given = {{"ring", "1MiB"}};
  const json context = make_context("regatta run a.toml", e, json::array({host}), json::array(), {"w"});
  CHECK(context["experiment"]["sweep"] == json::array({{{"key", "train.batch"}, {"values", {64, 32}}},
                                                       {{"key", "cluster.workers"}, {"values", {1, 2}}}}));
  CHECK(context["experiment"]["strategy"]["plugin"] == "allreduce");
  CHECK(context["given"]["transport"]["shm"] == json{{"ring", "1MiB"}});
  CHECK(context["experiment"]["experiment"]["file"] == "a.toml");
  CHECK(context["hosts"].size() == 1);
  CHECK(context["command"] == "regatta run a.toml");
  CHECK(context["regatta"].is_string());
  CHECK(context["warnings"] == json{"w"});
  CHECK(context["date"].get<std::string>().size() == 20);
  CHECK(command_line({"regatta", "run", "a b.toml", "--set", "x='1'", ""}) ==
        R"(regatta run 'a b.toml' --set 'x='\''1'\''' '')");
}

TEST_CASE(
    "a campaign goes on only with the same experiment, program, plugins, data and hosts, and says which differs") {
  const json before = {
      {"regatta", "0.1.0"},
      {"git", "abc"},
      {"build", "Release"},
      {"date", "2026-01-01T00:00:00Z"},
      {"experiment", {{"train", {{"batch", 32}}}}},
      {"given", json::object()},
      {"hosts", json::array({{{"name", "a"}, {"cpu", "b"}, {"cores", 2}, {"memory_bytes", 2}}})},
      {"plugins", json::array({{{"kind", "model"}, {"id", "mlp"}, {"sha256", "12"}},
                               {{"kind", "strategy"}, {"id", "none"}, {"sha256", "34"}}})},
      {"data", json::array({{{"path", "/d"}, {"sha256", "56"}}, {{"path", "/none"}, {"sha256", nullptr}}})}};
  const auto conflict = [&](const char* pointer, const json& value) {
    json now = before;
    now[json::json_pointer(pointer)] = value;
    return resume_conflict(before, now);
  };
  CHECK(resume_conflict(before, before) == "");
  CHECK(conflict("/date", "2026-01-02T00:00:00Z") == "");
  CHECK(conflict("/hosts/0/memory_bytes", 1) == ""); // free memory may differ
  CHECK(conflict("/experiment/train/batch", 33) == "the experiment differs");
  CHECK(conflict("/experiment/report", json::array({{{"rows", "train.batch"}}})) == ""); // only shows the results
  CHECK(conflict("/git", "def") == "regatta was rebuilt from other sources");
  CHECK(conflict("/build", "Debug") == "regatta was rebuilt from other sources");
  CHECK(conflict("/plugins/0/sha256", "13") == "model mlp has another binary");
  CHECK(conflict("/plugins/1/sha256", "13") == "strategy none has another binary");
  CHECK(conflict("/data/0/sha256", "57") == "the data of /d changed");
  CHECK(conflict("/data/0/sha256", nullptr) == "the data of /d changed"); // gone
  CHECK(conflict("/data/1/sha256", "57") == "");                          // a vocabulary that the campaign made
  CHECK(conflict("/hosts/0/cores", 4) == "the hosts differ");

  // A context that somebody changed by hand.
  const auto damaged = [&](const char* pointer, const json& value) {
    json changed = before;
    changed[json::json_pointer(pointer)] = value;
    return resume_conflict(changed, before);
  };
  const std::string wrong = " in the context of its first record is missing or has a value of the wrong type";
  CHECK(damaged("/date", 5) == "\"date\"" + wrong);
  CHECK(damaged("/given", json::array()) == "\"given\"" + wrong);
  CHECK(damaged("/hosts", "a") == "\"hosts\"" + wrong);
  CHECK(damaged("/hosts/0", 5) == "\"hosts[0]\"" + wrong);
  CHECK(damaged("/plugins/1/id", json::array()) == "\"plugins[1].id\"" + wrong);
  json short_of_plugins = before;
  short_of_plugins.erase("plugins");
  CHECK(resume_conflict(short_of_plugins, before) == "\"plugins\"" + wrong);
  // Lists of which the context of now has no element, and null, which matches every type.
  const auto beside_none = [&](const char* list, const json& value) {
    json was = before, now = before;
    was[list] = value;
    now[list] = json::array();
    return resume_conflict(was, now);
  };
  for (const json& bad : {json::array({5}), json::array({nullptr}), json::array({{{"path", 5}, {"sha256", "1"}}}),
                          json::array({{{"kind", 1}, {"id", nullptr}}})}) {
    CAPTURE(bad);
    CHECK_NOTHROW(beside_none("data", bad));
    CHECK(beside_none("plugins", bad).ends_with("has another binary"));
    CHECK(beside_none("hosts", bad) == "the hosts differ");
  }
  CHECK(beside_none("data", json::array({{{"path", 5}, {"sha256", "1"}}})) == "the data of 5 changed");
  CHECK(damaged("/plugins/1/id", nullptr) == "strategy - has another binary");
}
