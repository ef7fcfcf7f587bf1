// SPDX-License-Identifier: Apache-2.0
#include "comm/plan.hpp"

namespace regatta::comm {

using nlohmann::json;

json to_json(const plan& p) {
  json operations = json::array();
  for (const operation& o : p.operations) operations.push_back({o.op, o.algorithm});
  return {{"transport", p.transport.id},
          {"parameters", p.transport.parameters},
          {"files", p.files},
          {"address", p.address},
          {"ranks", p.ranks},
          {"spin_ns", p.spin_ns},
          {"operations", operations},
          {"counts", p.counts},
          {"seconds", p.seconds}};
}

plan plan_from_json(const json& j) {
  plan p;
  j.at("transport").get_to(p.transport.id);
  j.at("parameters").get_to(p.transport.parameters);
  j.at("files").get_to(p.files);
  j.at("address").get_to(p.address);
  j.at("ranks").get_to(p.ranks);
  j.at("spin_ns").get_to(p.spin_ns);
  for (const json& o : j.at("operations")) p.operations.push_back({o.at(0), o.at(1)});
  j.at("counts").get_to(p.counts);
  j.at("seconds").get_to(p.seconds);
  return p;
}

json to_json(const std::vector<measurement>& all) {
  json out = json::array();
  for (const measurement& m : all) {
    std::vector<std::int64_t> ns;
    for (const double s : m.seconds) ns.push_back(static_cast<std::int64_t>(s * 1e9));
    out.push_back({{"op", m.what.op},
                   {"algorithm", m.what.algorithm},
                   {"bytes", m.bytes},
                   {"ns", ns},
                   {"wrong", m.wrong},
                   {"cpu_seconds", m.cpu_seconds}});
  }
  return out;
}

std::vector<measurement> measurements_from_json(const json& j) {
  std::vector<measurement> all;
  for (const json& entry : j) {
    measurement m;
    entry.at("op").get_to(m.what.op);
    entry.at("algorithm").get_to(m.what.algorithm);
    entry.at("bytes").get_to(m.bytes);
    for (const std::int64_t ns : entry.at("ns")) m.seconds.push_back(static_cast<double>(ns) * 1e-9);
    entry.at("wrong").get_to(m.wrong);
    entry.at("cpu_seconds").get_to(m.cpu_seconds);
    all.push_back(std::move(m));
  }
  return all;
}

} // namespace regatta::comm
