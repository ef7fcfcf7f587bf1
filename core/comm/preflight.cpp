// SPDX-License-Identifier: Apache-2.0
#include "comm/preflight.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/links.hpp"
#include "comm/matrix.hpp"
#include "comm/outliers.hpp"
#include "comm/preflight_devices.hpp"
#include "comm/preflight_links.hpp"
#include "results/statistics.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

// Returns the value that more than half of the hosts have.
std::optional<json> majority(const std::vector<json>& values) {
  for (const json& v : values)
    if (2 * static_cast<std::size_t>(std::ranges::count(values, v)) > values.size()) return v;
  return {};
}

std::string shown(const json& v) {
  if (v.is_array()) return v.empty() ? "none" : fmt::format("{} x {}", v.size(), shown(v.front()));
  return v.is_string() ? v.get<std::string>() : v.is_null() ? "unknown" : v.dump();
}

class examination {
public:
  examination(const plan& p, const std::vector<host_facts>& facts, const std::vector<json>& results)
      : plan_(p), facts_(facts), results_(results), links_(links_of(results, "alone")) {}

  json run() {
    std::set<std::string> keys;
    for (const host_facts& f : facts_)
      if (f.program.is_object())
        for (const auto& [key, value] : f.program.items()) keys.insert(key);
    for (const std::string& key : keys)
      compare("program", key, [&](std::size_t i) { return facts_[i].program.value(key, json()); });
    keys.clear();
    for (const host_facts& f : facts_)
      if (f.plugins.is_object())
        for (const auto& [key, value] : f.plugins.items()) keys.insert(key);
    for (const std::string& key : keys)
      compare("plugin", key, [&](std::size_t i) { return facts_[i].plugins.value(key, json()); });
    if (const auto usual = compare("interface", "subnet", of_host("subnet")); !usual)
      note("the hosts use different subnets: interfaces are not compared");
    compare("mtu", "MTU", of_host("mtu"));
    compare("quota", "CPU quota", [&](std::size_t i) {
      const json limit = facts_[i].description.value("cgroup_cpus", json());
      return limit.is_null() ? json("none") : limit;
    });
    compare("gpu", "GPUs", [&](std::size_t i) { return facts_[i].description.value("gpus", json::array()); });
    compare_rates("compute", "fma", "multiply-adds of all CPUs", "FLOP/s");
    compare_rates("memory", "copy", "copies of all CPUs", "B/s");
    std::vector<finding> found = findings_of_devices(facts_, results_);
    std::ranges::move(findings_of_links(plan_, names(), results_, links_), std::back_inserter(found));
    for (const finding& f : found) suspect({f.hosts.begin(), f.hosts.end()}, f.check, f.evidence);
    note_untimed_gpus();
    if (facts_.size() == 2)
      note("of two hosts, one cannot tell which is wrong: figures are compared with each other, links with their other "
           "direction only");
    if (facts_.size() == 1) note("one host: only its GPUs can be compared, with each other");
    return {{"hosts", hosts()},
            {"links", facts_.size() > 1 ? matrix_of(plan_, names(), results_) : json(nullptr)},
            {"measured", facts_.size() > 1 ? measured() : json(nullptr)},
            {"bisection", facts_.size() > 1 ? bisection() : json(nullptr)},
            {"suspects", suspects_},
            {"notes", notes_}};
  }

private:
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const host_facts& f : facts_) all.push_back(f.name);
    return all;
  }
  std::function<json(std::size_t)> of_host(const char* member) const {
    return [this, member](std::size_t i) { return results_[i].at("host").at(member); };
  }

  void suspect(const std::vector<std::size_t>& hosts, const std::string& check, const std::string& evidence) {
    json entry = {{"hosts", json::array()}, {"check", check}, {"evidence", evidence}};
    for (const std::size_t h : hosts) entry["hosts"].push_back(facts_[h].name);
    suspects_.push_back(std::move(entry));
  }
  void note(const std::string& text) { notes_.push_back(text); }

  // Compares a fact. Returns the value of most hosts.
  std::optional<json> compare(const char* check, const std::string& what, const std::function<json(std::size_t)>& of) {
    std::vector<json> values;
    for (std::size_t i = 0; i < facts_.size(); ++i) values.push_back(of(i));
    auto usual = majority(values);
    const auto equal = [&](std::size_t i) { return static_cast<std::size_t>(std::ranges::count(values, values[i])); };
    if (usual) {
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != *usual)
          suspect({i}, check,
                  fmt::format("{}: {}; {} of {} hosts have {}", what, value_of(check, i, values[i]),
                              std::ranges::count(values, *usual), values.size(), shown(*usual)));
    } else if (values.size() == 2 || std::string_view(check) == "program" || std::string_view(check) == "plugin") {
      std::string text;
      std::vector<std::size_t> all;
      for (std::size_t i = 0; i < values.size(); ++i) {
        all.push_back(i);
        if (all.size() <= 8)
          text += fmt::format("{}{} on {}", i ? ", " : "", value_of(check, i, values[i]), facts_[i].name);
      }
      suspect(all, check, fmt::format("{} differs: {}", what, text));
    } else {
      note(fmt::format("{} differs between hosts without a majority: not compared ({} on {}, also on {} others)", what,
                       shown(values[0]), facts_[0].name, equal(0) - 1));
    }
    return usual;
  }
  std::string value_of(const std::string& check, std::size_t host, const json& value) const {
    if (check == "plugin" && value.is_null()) return "missing";
    if (check != "interface") return shown(value);
    return fmt::format("{} of interface {}", shown(value), shown(results_[host].at("host").at("interface")));
  }

  void compare_rates(const char* check, const char* member, const char* what, const char* unit) {
    std::map<std::string, std::vector<std::size_t>> kinds; // hosts by CPU model and number
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      const json& d = facts_[i].description;
      kinds[d.value("cpu", json()).dump() + d.value("cores", json()).dump()].push_back(i);
    }
    for (const auto& [kind, hosts] : kinds) {
      std::vector<double> values;
      for (const std::size_t i : hosts) values.push_back(results_[i].at("host").at(member).get<double>());
      const outlier_rule rule(values);
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        if (!rule.is_low(values[i])) continue;
        const json& host = results_[hosts[i]].at("host");
        std::string text =
            fmt::format("{}: {:.3g} G{}, {:.0f} % of the usual {:.3g} G{} of {} hosts", what, values[i] * 1e-9, unit,
                        100 * values[i] / rule.usual(), rule.usual() * 1e-9, unit, hosts.size());
        if (const double share = host.at("cpu_share"); share < 0.9)
          text += fmt::format("; its threads got the CPUs for {:.0f} % of the time", 100 * share);
        if (const double stopped = host.at("throttled"); stopped > 0.01)
          text += fmt::format("; a CPU quota stopped them for {:.2g} s", stopped);
        suspect(hosts.size() == 2 ? hosts : std::vector{hosts[i]}, check,
                hosts.size() == 2 ? facts_[hosts[i]].name + ": " + text : text);
      }
    }
  }

  void note_untimed_gpus() {
    for (std::size_t i = 0; i < facts_.size(); ++i)
      if (!facts_[i].description.value("gpus", json::array()).empty() && results_[i].at("host").at("devices").empty())
        return note("GPUs are not timed: no executor plugin for them was found (see `regatta list executors`)");
  }

  // Which pairs were measured.
  json measured() const {
    const json& s = results_.front();
    const auto pairs_of_links = [&](const char* pass) { return links_of(results_, pass).size() / 2; };
    return {
        {"pairs", s.at("pairs")},
        {"alone", pairs_of_links("alone")},
        {"at_once", pairs_of_links("at_once")},
        {"pairs_at_once", s.at("pairs_at_once")},
        {"rate_at_once", s.at("rate_at_once")},
        {"seconds",
         {{"alone", s.at("seconds_alone")}, {"at_once", s.at("seconds_at_once")}, {"again", s.at("seconds_again")}}}};
  }
  json bisection() const {
    std::vector<double> rates;
    for (const rank_link& l : links_)
      if (l.bandwidth > 0) rates.push_back(l.bandwidth);
    const std::size_t pairs = facts_.size() / 2;
    return {{"pairs", pairs},
            {"halves", results_.front().at("halves")},
            {"neighbours", results_.front().at("neighbours")},
            {"alone", median(rates).value_or(0) * static_cast<double>(pairs)}};
  }

  json hosts() const {
    json all = json::array();
    for (std::uint32_t h = 0; h < facts_.size(); ++h) {
      json host = results_[h].at("host");
      host.erase("from");
      host["name"] = facts_[h].name;
      host["cgroup_cpus"] = facts_[h].description.value("cgroup_cpus", json());
      host["gpus"] = facts_[h].description.value("gpus", json::array());
      const auto of_links = [&](link_figure figure, bool sends) -> json {
        std::vector<double> values;
        for (const rank_link& l : links_)
          if ((sends ? l.from : l.to) == h)
            if (const double v = figure_of(l, figure); !std::isnan(v)) values.push_back(v);
        const auto middle = median(values);
        return middle ? json(*middle) : json(nullptr);
      };
      host["sends"] = of_links(link_figure::bandwidth, true);
      host["receives"] = of_links(link_figure::bandwidth, false);
      host["latency"] = of_links(link_figure::latency, true);
      host["loss_out"] = of_links(link_figure::loss, true);
      host["loss_in"] = of_links(link_figure::loss, false);
      all.push_back(std::move(host));
    }
    return all;
  }

  const plan& plan_;
  const std::vector<host_facts>& facts_;
  const std::vector<json>& results_;
  std::vector<rank_link> links_; // measured alone
  json suspects_ = json::array(), notes_ = json::array();
};

} // namespace

pair_plan preflight_pairs(std::uint32_t hosts) {
  const bool few = hosts <= 24;
  return {.repeats = few ? 4U : 10U, .alone = few, .at_once = few, .many = !few, .hosts = true};
}

json preflight_of(const plan& p, const std::vector<host_facts>& facts, const std::vector<json>& results) {
  return examination(p, facts, results).run();
}

} // namespace regatta::comm
