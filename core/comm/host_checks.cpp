// SPDX-License-Identifier: Apache-2.0
#include "comm/host_checks.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "comm/device_checks.hpp"
#include "comm/outliers.hpp"
#include "comm/path_mtu.hpp"
#include "launch/cgroup.hpp"
#include "machine/host_speed.hpp"
#include "network/interfaces.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

constexpr std::uint32_t most_turns = 64; // hosts work in so many turns: more would take minutes
constexpr std::uint32_t most_twice = 24; // hosts that are measured twice even if they are not slow

// Returns the seconds for which quotas of this process's control groups have stopped it or its siblings; 0: unknown.
double throttled_seconds() {
  double most = 0;
  for (const control_group& g : control_groups("cpu")) {
    std::ifstream file(g.folder / "cpu.stat");
    std::string name;
    for (double value = 0; file >> name >> value;) {
      if (name == "throttled_usec") most = std::max(most, 1e-6 * value); // v2
      if (name == "throttled_time") most = std::max(most, 1e-9 * value); // v1
    }
  }
  return most;
}

std::vector<host_speed> speeds_of_all(control_client& control, const host_speed& mine) {
  std::vector<host_speed> all;
  for (const blob& b : control.exchange("speeds", json::to_cbor(json(mine)))) all.push_back(parse_cbor(b));
  return all;
}

// Returns which hosts are to be measured again.
std::vector<bool> slow_hosts(const std::vector<host_speed>& all) {
  std::vector<double> fma, copy;
  for (const host_speed& s : all) {
    fma.push_back(s.fma);
    copy.push_back(s.copy);
  }
  std::vector<bool> slow(all.size());
  for (const auto& values : {fma, copy}) {
    const outlier_rule rule(values);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (rule.is_low(values[i])) slow[i] = true;
  }
  return slow;
}

host_speed best_speed(control_client& control, const plan& p) {
  host_speed best;
  std::vector<bool> chosen(p.ranks, true);
  const unsigned sweeps = p.ranks > most_twice ? 1 : 2;
  const std::uint32_t at_once = (p.ranks + most_turns - 1) / most_turns;
  for (unsigned sweep = 0; sweep < sweeps + p.pairs.repeats; ++sweep) {
    if (sweep >= sweeps) {
      chosen = slow_hosts(speeds_of_all(control, best));
      if (std::ranges::none_of(chosen, [](bool c) { return c; })) break;
    }
    for (std::uint32_t first = 0; first < p.ranks; first += at_once) {
      const std::uint32_t end = std::min(first + at_once, p.ranks);
      if (std::none_of(chosen.begin() + first, chosen.begin() + end, [](bool c) { return c; })) continue;
      const std::string name = fmt::format("CPUs of host {} of {}", first + 1, p.ranks);
      control.operation(name.c_str(), pace::rare);
      if (control.rank() >= first && control.rank() < end && chosen[control.rank()]) {
        const host_speed now = measure_host_speed(std::max(p.pairs.threads, 1U));
        if (now.fma > best.fma) best.cpu_share = now.cpu_share;
        best.fma = std::max(best.fma, now.fma);
        best.copy = std::max(best.copy, now.copy);
      }
      control.barrier("CPUs");
    }
  }
  return best;
}

} // namespace

json check_host(control_client& control, const plan& p) {
  const double throttled = throttled_seconds();
  json host = best_speed(control, p);
  host["throttled"] = throttled_seconds() - throttled;
  const std::string& mine = p.addresses.at(p.host_of.at(control.rank())).front();
  const address_interface i = interface_of(mine);
  host["interface"] = text_or_null(i.name);
  host["subnet"] = text_or_null(i.subnet);
  host["mtu"] = i.mtu ? json(i.mtu) : json(nullptr);
  host["from"] = json::array();
  if (p.ranks > 1) {
    control.operation("probing the paths between hosts", pace::rare);
    const auto came = probe_paths(control, mine, i.mtu);
    for (std::uint32_t r = 0; r < came.size(); ++r)
      host["from"].push_back(r == control.rank() ? json(nullptr)
                                                 : json{{"small", came[r].small}, {"large", came[r].large}});
  }
  host["devices"] = check_devices(control, p); // last, because hosts do so at the same time, and do not wait
  return host;
}

bool drops_large_packets(const std::vector<json>& hosts, std::uint32_t from, std::uint32_t to) {
  const json& came = hosts.at(to).at("from").at(from);
  const json &sent = hosts.at(from).at("mtu"), &fits = hosts.at(to).at("mtu");
  return came.is_object() && came.at("small") == true && came.at("large") == false && sent.is_number() &&
         fits.is_number() && sent <= fits;
}

} // namespace regatta::comm
