// SPDX-License-Identifier: Apache-2.0
#include "comm/preflight.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "comm/matrix.hpp"
#include "report/text_table.hpp"

namespace regatta::comm {

std::string preflight_text(const nlohmann::json& document, bool markdown) {
  using nlohmann::json;
  text_table t;
  t.keys = 1;
  t.columns = {{"host"}};
  for (const char* header : {"FMA GFLOP/s", "copy GB/s", "GPU TFLOP/s", "GPU GB/s", "sends MB/s", "receives MB/s",
                             "latency us", "lost out %", "lost in %"})
    t.columns.push_back({header, true});
  t.columns.insert(t.columns.end(), {{"interface"}, {"MTU", true}, {"quota", true}, {"suspect"}});
  const json& suspects = document.at("suspects");
  for (const json& host : document.at("hosts")) {
    const auto number = [&](const char* key, double scale, const char* form) {
      const json& v = host.at(key);
      return v.is_number() ? fmt::format(fmt::runtime(form), v.get<double>() * scale) : std::string("-");
    };
    const auto text = [&](const char* key) {
      const json& v = host.at(key);
      return v.is_null() ? std::string("-") : v.is_string() ? v.get<std::string>() : v.dump();
    };
    // The slowest of the host's GPUs.
    const auto slowest = [&](const char* key, double scale) {
      std::vector<double> rates;
      for (const json& d : host.at("devices"))
        if (d.at(key).is_number()) rates.push_back(d.at(key));
      return rates.empty() ? std::string("-") : fmt::format("{:.1f}", *std::ranges::min_element(rates) * scale);
    };
    std::vector<std::string> checks;
    for (const json& s : suspects)
      if (std::ranges::find(s.at("hosts"), host.at("name")) != s.at("hosts").end())
        if (const std::string check = s.at("check"); std::ranges::find(checks, check) == checks.end())
          checks.push_back(check);
    t.rows.push_back({{text("name"), number("fma", 1e-9, "{:.1f}"), number("copy", 1e-9, "{:.1f}"),
                       slowest("gemm", 1e-12), slowest("copy", 1e-9), number("sends", 1e-6, "{:.1f}"),
                       number("receives", 1e-6, "{:.1f}"), number("latency", 1e6, "{:.1f}"),
                       number("loss_out", 100, "{:.2f}"), number("loss_in", 100, "{:.2f}"), text("interface"),
                       text("mtu"), host.at("cgroup_cpus").is_null() ? "none" : text("cgroup_cpus"), join(checks)},
                      ""});
  }
  std::string out = markdown ? draw_markdown(t) + "\n" : draw(t, 0);
  const std::string item = markdown ? "* " : "";
  if (const json& b = document.at("bisection"); b.is_object()) {
    const auto rate = [&](const char* key) { return link_figure_text("bandwidth", b.at(key)); };
    out +=
        fmt::format("{}bisection: {} pairs of hosts at once send {} between halves, {} between neighbours; alone they "
                    "would {}\n",
                    item, b.at("pairs").dump(), rate("halves"), rate("neighbours"), rate("alone"));
    const json& m = document.at("measured");
    out +=
        fmt::format("{}pairs: {} of {} measured while no other pair sends, {} with {} at once\n", item,
                    m.at("alone").dump(), m.at("pairs").dump(), m.at("at_once").dump(), m.at("pairs_at_once").dump());
  }
  for (const json& w : document.at("context").at("warnings")) out += item + "warning: " + w.get<std::string>() + "\n";
  for (const json& n : document.at("notes")) out += item + "note: " + n.get<std::string>() + "\n";
  for (const json& s : suspects)
    out += fmt::format("{}SUSPECT {}: {}: {}\n", item, join(s.at("hosts").get<std::vector<std::string>>(), ", "),
                       s.at("check").get<std::string>(), s.at("evidence").get<std::string>());
  if (suspects.empty()) out += item + "no suspects\n";
  return out;
}

} // namespace regatta::comm
