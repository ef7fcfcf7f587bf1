// SPDX-License-Identifier: Apache-2.0
#include "comm/preflight_links.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "comm/host_checks.hpp"
#include "comm/matrix.hpp"
#include "comm/survey.hpp"
#include "results/statistics.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

constexpr std::uint32_t everyone = UINT32_MAX;

class link_examination {
public:
  link_examination(const plan& p, const std::vector<std::string>& names, const std::vector<json>& results,
                   const std::vector<rank_link>& links)
      : plan_(p), names_(names), results_(results), links_(links) {}

  std::vector<finding> run() {
    check_paths();
    if (names_.size() > 1)
      for (const link_figure f : {link_figure::bandwidth, link_figure::loss, link_figure::latency}) check_figure(f);
    return std::move(findings_);
  }

private:
  // Describes the links of a host, with `everyone` at the other end, or one link.
  using evidence_of = std::function<std::string(std::uint32_t from, std::uint32_t to)>;

  void check_paths() {
    std::vector<json> hosts;
    for (const json& r : results_) hosts.push_back(r.at("host"));
    std::vector<rank_pair> lost, all;
    for (std::uint32_t from = 0; from < names_.size(); ++from)
      for (std::uint32_t to = 0; to < names_.size(); ++to) {
        if (from == to) continue;
        all.emplace_back(from, to);
        if (drops_large_packets(hosts, from, to)) lost.emplace_back(from, to);
      }
    attribute("path_mtu", lost, all, [&](std::uint32_t from, std::uint32_t to) {
      return fmt::format("packets of {} bytes do not arrive, small ones do; these links were not measured",
                         hosts[from == everyone ? to : from].at("mtu").dump());
    });
  }

  void check_figure(link_figure figure) {
    std::vector<rank_pair> far, measured;
    double usual = 0;
    for (const link_mark& m : marks_of(links_, plan_.host_of))
      if (m.figure == figure) {
        far.emplace_back(m.from, m.to);
        usual = m.usual;
      }
    for (const rank_link& l : links_)
      if (!std::isnan(figure_of(l, figure))) measured.emplace_back(l.from, l.to);
    attribute(name_of(figure), far, measured, [&](std::uint32_t from, std::uint32_t to) {
      std::vector<double> values;
      for (const rank_link& l : links_)
        if ((from == everyone || l.from == from) && (to == everyone || l.to == to))
          if (const double v = figure_of(l, figure); !std::isnan(v)) values.push_back(v);
      return fmt::format("{} {}, usual {}", name_of(figure),
                         link_figure_text(name_of(figure), median(values).value_or(0)),
                         link_figure_text(name_of(figure), usual));
    });
  }

  // Names the hosts, else the pairs, to which bad links point.
  void attribute(const char* check, const std::vector<rank_pair>& bad, const std::vector<rank_pair>& measured,
                 const evidence_of& evidence) {
    if (names_.size() > 2)
      for (const bad_end& e : bad_ends(bad, measured, static_cast<std::uint32_t>(names_.size()))) {
        accused_.insert(e.rank);
        findings_.push_back({{e.rank},
                             check,
                             fmt::format("{} {} of {} hosts: {}", e.sends ? "to" : "from", e.bad, e.measured,
                                         e.sends ? evidence(e.rank, everyone) : evidence(everyone, e.rank))});
      }
    for (const auto& [from, to] : std::set<rank_pair>(bad.begin(), bad.end()))
      if (!accused_.contains(from) && !accused_.contains(to))
        findings_.push_back(
            {{from, to}, check, fmt::format("from {} to {}: {}", names_[from], names_[to], evidence(from, to))});
  }

  const plan& plan_;
  const std::vector<std::string>& names_;
  const std::vector<json>& results_;
  const std::vector<rank_link>& links_;
  std::set<std::uint32_t> accused_; // hosts, for their links
  std::vector<finding> findings_;
};

} // namespace

std::vector<finding> findings_of_links(const plan& p, const std::vector<std::string>& names,
                                       const std::vector<json>& results, const std::vector<rank_link>& links) {
  return link_examination(p, names, results, links).run();
}

} // namespace regatta::comm
