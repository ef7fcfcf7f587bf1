// SPDX-License-Identifier: Apache-2.0
#include "artifact/reproduction.hpp"

#include "base/text.hpp"
#include "compare/comparison.hpp"
#include "compare/render_comparison.hpp"
#include "report/claims_table.hpp"
#include "report/fields.hpp"
#include "report/text_table.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

std::string machine_text(const json& result) {
  const json& context = result.at("context");
  const auto text = [](const json& of, const char* member) { return plain_text(of.value(member, json())); };
  const json hosts = context.value("hosts", json::array());
  const json host = hosts.empty() ? json::object() : hosts.front();
  return fmt::format("regatta {} ({}, {}), {} cores {}, {}", text(context, "regatta"), text(context, "git"),
                     text(context, "build"), text(host, "cores"), text(host, "cpu"), text(context, "date"));
}

// Returns ours of a claim of theirs; null: there is none.
json same_claim(const json& claim, const json& ours) {
  for (const json& other : ours.value("claims", json::array())) {
    const auto equal = [&](const char* member) { return claim.at(member) == other.at(member); };
    if (equal("metric") && equal("left") && equal("right") && equal("at_least") && equal("at_most") && equal("across"))
      return other;
  }
  return nullptr;
}

std::string value_text(const json& claim) {
  const std::string interval = claim_interval(claim);
  return claim_value(claim) + (interval == "-" ? "" : " (" + interval + ")");
}

// Returns the sums of the data sets that could be read, sorted.
std::vector<std::string> data_sums(const json& result) {
  std::vector<std::string> sums;
  const json sets = result.at("context").value("data", json::array());
  for (const json& set : sets) sums.push_back(set.value("sha256", json()).dump());
  std::ranges::sort(sums);
  return sums;
}

} // namespace

reproduction compare_with(const json& theirs, const json& ours, std::size_t width) {
  reproduction r;
  r.text = fill("theirs: " + machine_text(theirs), width, 2) + fill("ours:   " + machine_text(ours), width, 2) + "\n";
  text_table table;
  table.columns = {{"claim"}, {"bounds"}, {"theirs", true}, {"ours", true}, {"their verdict"}, {"our verdict"}};
  table.keys = 1;
  const json claims = theirs.value("claims", json::array());
  for (const json& claim : claims) {
    const json own = same_claim(claim, ours);
    const std::string verdict = own.is_null() ? "undecided" : own.at("verdict").get<std::string>();
    ++r.claims;
    r.failed += verdict == "fails";
    r.undecided += verdict == "undecided";
    table.rows.push_back(
        {{claim_name(claim), claim_bounds(claim), value_text(claim), own.is_null() ? "-" : value_text(own),
          claim_verdict(claim), own.is_null() ? "undecided: not among ours" : claim_verdict(own)},
         ""});
  }
  r.text += table.rows.empty() ? std::string("the artifact makes no claims\n") : draw(table, width);
  // The path of data is a part of its fingerprint, and differs between machines.
  const std::vector<std::string> sums = data_sums(theirs);
  const bool same_data = sums == data_sums(ours) && std::ranges::count(sums, "null") == 0;
  const std::vector<std::string> across =
      same_data && !sums.empty() ? std::vector<std::string>{"data"} : std::vector<std::string>{};
  r.text += "\n" + render_comparison(compare({{"theirs", theirs}, {"ours", ours}}, across), {}, format::console, width);
  return r;
}

} // namespace regatta
