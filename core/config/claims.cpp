// SPDX-License-Identifier: Apache-2.0
#include "config/claims.hpp"

#include "base/text.hpp"
#include "config/parameter_check.hpp"
#include "config/schema_rules.hpp"
#include "registry/parameters.hpp"
#include "results/compared.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

const std::vector<std::string> claim_members = {"left", "right", "metric", "at_least", "at_most", "across", "text"};

// A condition of a side: this key has this value.
struct condition {
  std::string path;
  key_name name;
  toml_node value;
};

class claim_reader {
public:
  claim_reader(const settings& all, const catalogue& components, const folders& start,
               const std::vector<case_config>& cases, const std::string& file, diagnostics& wrong)
      : all_(all), components_(components), start_(start), cases_(cases), file_(file), wrong_(wrong),
        usable_(wrong.none()) {}

  claims_read read_all() {
    const toml_node& claims = *all_.claims;
    const auto is_table = [](const toml_node& n) { return n.is == toml_node::kind::table; };
    if (claims.is != toml_node::kind::array || !std::ranges::all_of(claims.items, is_table)) {
      wrong_.add({{}, claims.at}, "claim",
                 fmt::format("expected tables, each under [[claim]], got {}", quoted(claims)));
      return {};
    }
    for (const toml_node& claim : claims.items) read_one(claim);
    return std::move(read_);
  }

private:
  void read_one(const toml_node& claim) {
    for (const auto& [name, node] : claim.members)
      if (std::ranges::count(claim_members, name) == 0)
        wrong_.add(
            {{}, node.key}, "claim." + one_line(name),
            fmt::format("no such key{}; [[claim]] has {}", did_you_mean(name, claim_members), join(claim_members)));
    json c = {{"metric", metric(claim)},
              {"at_least", bound(claim, "at_least")},
              {"at_most", bound(claim, "at_most")},
              {"across", across(claim)},
              {"text", text(claim)}};
    if (!claim.find("at_least") && !claim.find("at_most"))
      wrong_.add({{}, claim.at}, "claim", "expected at_least or at_most: the bounds of left / right");
    if (c["at_least"].is_number() && c["at_most"].is_number() && c["at_least"] > c["at_most"])
      wrong_.add({{}, claim.find("at_most")->at}, "claim.at_most",
                 fmt::format("expected at_least ({}) or more, got {}", c["at_least"].dump(), c["at_most"].dump()));
    left_out_ = false;
    c["left"] = side(claim, "left");
    c["right"] = claim.find("right") ? side(claim, "right") : json();
    if (c["metric"] == "seconds_to_loss" && c["right"].is_null())
      wrong_.add({{}, claim.at}, "claim", "expected right beside the metric seconds_to_loss: the loss is one of both");
    if (!left_out_ && c["left"].is_object() && c["left"] == c["right"])
      wrong_.add({{}, claim.find("right")->at}, "claim.right", "expected another case than that of left");
    if (!left_out_) read_.claims.push_back(std::move(c));
  }

  json metric(const toml_node& claim) {
    const std::vector<std::string> known = compared_paths();
    const toml_node* node = claim.find("metric");
    if (!node) {
      wrong_.add({{}, claim.at}, "claim.metric", fmt::format("must be given: one of {}", join(known)));
      return nullptr;
    }
    if (node->scalar.is_string() && std::ranges::count(known, node->scalar.get<std::string>())) return node->scalar;
    wrong_.add({{}, node->at}, "claim.metric",
               fmt::format("expected one of {}, got {}{}", join(known), quoted(*node),
                           node->scalar.is_string() ? did_you_mean(node->scalar.get<std::string>(), known) : ""));
    return nullptr;
  }

  json bound(const toml_node& claim, const char* name) {
    const toml_node* node = claim.find(name);
    if (!node) return nullptr;
    // Not NaN and not infinite, which JSON does not have.
    if (node->scalar.is_number() && node->scalar > 0 && node->scalar < 1e300) return node->scalar.get<double>();
    wrong_.add({{}, node->at}, fmt::format("claim.{}", name),
               fmt::format("expected a number above 0, such as 0.95, got {}", quoted(*node)));
    return nullptr;
  }

  json text(const toml_node& claim) {
    const toml_node* node = claim.find("text");
    if (!node) return nullptr;
    if (node->scalar.is_string()) return one_line(node->scalar.get<std::string>());
    wrong_.add({{}, node->at}, "claim.text", fmt::format("expected a string, got {}", quoted(*node)));
    return nullptr;
  }

  json across(const toml_node& claim) {
    const toml_node* node = claim.find("across");
    if (!node) return json::array();
    const auto& known = comparable_parts();
    json parts = value_of(*node);
    const auto is_part = [&](const json& part) {
      return part.is_string() && std::ranges::count(known, part.get<std::string>());
    };
    if (parts.is_array() && std::all_of(parts.begin(), parts.end(), is_part)) return parts;
    wrong_.add({{}, node->at}, "claim.across",
               fmt::format("expected a list of {}, got {}", join(known), quoted(*node)));
    return json::array();
  }

  // Returns the swept values of the case that a side selects; null after an error or a notice.
  json side(const toml_node& claim, const char* name) {
    const std::string path = fmt::format("claim.{}", name);
    const toml_node* node = claim.find(name);
    std::vector<condition> conditions;
    if (node && node->is != toml_node::kind::table) {
      wrong_.add({{}, node->at}, path,
                 fmt::format("expected a table of settings, such as {{ strategy.plugin = \"allreduce\" }}, got {}",
                             quoted(*node)));
      return nullptr;
    }
    if (node && !add_conditions("", *node, conditions)) return nullptr;
    std::vector<const case_config*> selected;
    for (const case_config& c : cases_)
      if (std::ranges::all_of(conditions, [&](const condition& one) { return has(c, one); })) selected.push_back(&c);
    if (selected.size() != 1) {
      refuse({{}, node ? node->at : claim.at}, path, conditions, selected);
      return nullptr;
    }
    json values = json::object();
    for (const auto& [key, value] : selected.front()->swept) values[key] = value;
    return values;
  }

  void refuse(const origin& from, const std::string& path, const std::vector<condition>& conditions,
              const std::vector<const case_config*>& selected) {
    std::string given;
    for (const condition& c : conditions)
      given += fmt::format("{}{} = {}", given.empty() ? "" : ", ", c.path, quoted(c.value));
    const std::string text =
        selected.empty()
            ? fmt::format("expected the settings of one of the {} cases, got {}, which none has", cases_.size(), given)
            : fmt::format("expected the settings of one case, got those of {}: add {}", selected.size(),
                          join(told_apart_by(selected), " or "));
    if (!usable_) return; // a side may select nothing because of another error
    if (!all_.from_options) return wrong_.add(from, path, text);
    left_out_ = true;
    read_.notices.push_back(fmt::format("{}:{}:{}: notice: {}: the claim is left out with these options: {}", file_,
                                        from.at.line, from.at.column, path, text));
  }

  // Returns the swept keys in which the cases differ.
  static std::vector<std::string> told_apart_by(const std::vector<const case_config*>& selected) {
    std::vector<std::string> keys;
    const auto value_in = [](const case_config& c, const std::string& key) {
      for (const auto& [name, value] : c.swept)
        if (name == key) return value;
      return json();
    };
    for (const case_config* c : selected)
      for (const auto& [key, value] : c->swept)
        if (std::ranges::count(keys, key) == 0 && std::ranges::any_of(selected, [&, &name = key](const auto* other) {
              return value_in(*other, name) != value_in(*selected.front(), name);
            }))
          keys.push_back(key);
    return keys;
  }

  // Accepts "train.batch" = 32 and train.batch = 32, which TOML reads as nested tables.
  bool add_conditions(const std::string& path, const toml_node& table, std::vector<condition>& to) {
    bool fine = true;
    for (const auto& [name, node] : table.members) {
      const std::string inside = path.empty() ? name : path + "." + name;
      if (node.is == toml_node::kind::table) {
        fine = add_conditions(inside, node, to) && fine;
        continue;
      }
      const auto named = find_name(inside, {{}, node.key}, components_, wrong_);
      if (named && named->key && !accept(*named->key, value_of(node)))
        wrong_.add({{}, node.at}, inside,
                   fmt::format("expected {}, got {}{}", expectation(*named->key), quoted(node),
                               near_choice(named->key->rule, node)));
      else if (named)
        to.push_back({inside, *named, node});
      fine = fine && !to.empty() && to.back().path == inside;
    }
    return fine;
  }

  bool has(const case_config& c, const condition& wanted) const {
    const auto& [path, name, node] = wanted;
    if (name.key) {
      const auto value = accept(*name.key, of_file(wanted));
      for (const auto& [key, swept] : c.swept) // a path of data is swept as it is written, and read() has it absolute
        if (key == path) return accept(*name.key, swept) == value;
      return read(*name.key, {}, c) == *value;
    }
    const component_choice& choice = choice_of(c, *name.section);
    if (!name.id.empty() && name.id != choice.id) return false;
    const auto* table = components_.parameters(*name.section, choice.id);
    if (!table) return false;
    const auto parameter =
        std::ranges::find_if(*table, [&, &p = name.parameter](const rg_param& r) { return p == r.name; });
    if (parameter == table->end()) return false;
    const auto value = accept(*parameter, value_of(node));
    const auto chosen = choice.parameters.find(name.parameter);
    return value && chosen != choice.parameters.end() && chosen->second == *value;
  }

  // Returns the value; of a plugin's file (config/plugin_files.hpp) the id of its component.
  json of_file(const condition& wanted) const {
    json value = value_of(wanted.value);
    const auto section = find_plugin_section(wanted.name.key->section());
    if (!section || wanted.name.key->leaf() != "plugin" || !components_.ids_in || !value.is_string()) return value;
    const auto& text = value.get_ref<const std::string&>();
    if (text.find('/') == std::string::npos && !text.ends_with(".so")) return value;
    const auto ids = components_.ids_in(*section, absolute_path(text, {}, start_));
    return ids.size() == 1 ? json(ids.front()) : value;
  }

  const settings& all_;
  const catalogue& components_;
  const folders& start_;
  const std::vector<case_config>& cases_;
  const std::string& file_;
  diagnostics& wrong_;
  claims_read read_;
  bool usable_;           // the cases: without errors elsewhere
  bool left_out_ = false; // the claim that is being read
};

} // namespace

claims_read read_claims(const settings& all, const catalogue& components, const folders& start,
                        const std::vector<case_config>& cases, const std::string& file, diagnostics& wrong) {
  if (!all.claims) return {};
  return claim_reader(all, components, start, cases, file, wrong).read_all();
}

} // namespace regatta
