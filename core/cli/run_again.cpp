// SPDX-License-Identifier: Apache-2.0
#include "cli/run_again.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/stored_document.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

// Returns for example "strategy star".
std::string name_of_plugin(const json& plugin) {
  return fmt::format("{} {}", plain_text(plugin.at("kind")), plain_text(plugin.at("id")));
}

bool installed(const registry& plugins, const json& plugin) {
  return std::ranges::any_of(plugins.components(), [&](const component& c) {
    return name_of(c.kind) == plugin.at("kind").get<std::string>() && c.id == plugin.at("id").get<std::string>();
  });
}

// Returns the element of `list` whose members `keys` are those of `like`; null if there is none.
json same_in(const json& list, const json& like, std::initializer_list<const char*> keys) {
  for (const json& one : list)
    if (std::ranges::all_of(keys, [&](const char* key) { return one.value(key, json()) == like.value(key, json()); }))
      return one;
  return nullptr;
}

} // namespace

json run_cards(const experiment& e) {
  json cards = json::array();
  for (const case_config& c : e.cases) {
    json swept = json::object();
    for (const auto& [key, value] : c.swept) swept[key] = value;
    cards.push_back({{"case", std::move(swept)}, {"toml", resolved_toml(c, e.plugin_path)}});
  }
  return cards;
}

cases_again::cases_again(const std::string& result, std::size_t only) : name_(one_line(result)) {
  stored_ = read_stored(result, {"regatta.result/1"}).document;
  if (stored_.value("simulated", false))
    throw failure(exit_code::usage,
                  fmt::format("{}: expected a measured result, got a simulated one: simulate its file "
                              "again",
                              name_));
  const json cards = context().value("cards", json());
  if (!cards.is_array() || cards.empty())
    throw failure(exit_code::usage,
                  fmt::format("{}: expected run cards (\"cards\" in its context), got none: a version without --again "
                              "wrote it; run the file resolved.toml beside it",
                              name_));
  if (only > cards.size())
    throw failure(exit_code::usage,
                  fmt::format("--case {}: expected a number from 1 to {}: {} has {}", only, cards.size(), name_,
                              cards.size() == 1 ? "one case" : fmt::format("{} cases", cards.size())));
  for (std::size_t i = 0; i < cards.size(); ++i)
    if (only == 0 || i + 1 == only) cards_.push_back(cards[i]);
  json entries = json::array();
  for (json& entry : stored_.at("results"))
    if (std::ranges::any_of(cards_, [&](const json& card) { return card.at("case") == entry.at("case"); }))
      entries.push_back(std::move(entry));
  stored_["results"] = std::move(entries);
}

std::vector<std::string> cases_again::plugin_path() const {
  std::vector<std::string> path;
  std::error_code error;
  for (const std::string& file : plugin_path_of(name_, {}, cards_.front().at("toml").get<std::string>()))
    if (std::filesystem::exists(file, error)) path.push_back(file);
  for (const json& plugin : context().at("plugins")) { // --plugin-path may have named them
    const std::filesystem::path file = plugin.at("path").get<std::string>();
    if (uses(plugin) && file.parent_path() != built_in_folder() && std::filesystem::exists(file, error))
      path.push_back(file.string());
  }
  return path;
}

// Whether a case that runs again uses this plugin. An executor is known from the fingerprint of a case that has run.
bool cases_again::uses(const json& plugin) const {
  const std::string kind = plugin.at("kind");
  return std::ranges::any_of(stored_.at("results"), [&](const json& entry) {
    if (kind == "executor") return entry.value("fingerprint", json::object()).value("executor", json()) == plugin["id"];
    const json chosen = field(stored_, entry, kind + ".plugin"), outer = plugin.value("nested_in", json::array());
    return chosen == plugin["id"] || std::find(outer.begin(), outer.end(), chosen) != outer.end();
  });
}

experiment cases_again::load(const std::vector<std::string>& set, const registry& plugins) const {
  for (const json& plugin : context().at("plugins"))
    if (uses(plugin) && !installed(plugins, plugin))
      throw failure(exit_code::plugin,
                    fmt::format("{}: cannot run again: {} (version {}) is missing; it was {}, SHA-256 {}: name its "
                                "file or folder with --plugin-path",
                                name_, name_of_plugin(plugin), plain_text(plugin.at("version")),
                                plain_text(plugin.at("path")), plain_text(plugin.at("sha256"))));
  experiment all;
  const json experiment_of = context().at("experiment");
  for (const json& swept : experiment_of.at("sweep")) {
    const std::string key = swept.at("key");
    if (std::ranges::any_of(set, [&](const std::string& option) { return option.starts_with(key + "="); }))
      throw failure(exit_code::usage,
                    fmt::format("--set {}: the cases of {} differ in this key, and each runs again with its own value",
                                key, name_));
    all.swept.push_back(key);
  }
  for (const json& card : cards_) {
    const catalogue components = catalogue_of(plugins);
    experiment one = load_experiment(name_, {set, {}}, components, card.at("toml").get<std::string>());
    case_config c = std::move(one.cases.front());
    for (const std::string& key : all.swept)
      if (card.at("case").contains(key)) c.swept.emplace_back(key, card["case"][key]);
    all.cases.push_back(std::move(c));
    all.name = one.name;
    all.file = one.file;
    all.plugin_path = one.plugin_path;
    for (std::string& notice : one.notices)
      if (std::ranges::find(all.notices, notice) == all.notices.end()) all.notices.push_back(std::move(notice));
  }
  all.reports = experiment_of.at("report");
  return all;
}

std::vector<std::string> cases_again::differences(const json& now) const {
  std::vector<std::string> texts;
  for (const json& data : now.at("data")) {
    const json before = same_in(context().at("data"), data, {"path", "format"});
    if (before.is_object() && !before.at("sha256").is_null() && before["sha256"] != data.at("sha256"))
      throw failure(exit_code::usage,
                    fmt::format("{}: cannot run again: the data {} have other contents (SHA-256 {}, now {}): restore "
                                "them",
                                name_, plain_text(data.at("path")), plain_text(before["sha256"]),
                                plain_text(data["sha256"])));
  }
  for (const json& plugin : now.at("plugins")) {
    const json before = same_in(context().at("plugins"), plugin, {"kind", "id"});
    if (before.is_object() && before.at("sha256") != plugin.at("sha256"))
      texts.push_back(fmt::format("{} is another binary than in {} (SHA-256 {:.12}…, now {:.12}…)",
                                  name_of_plugin(plugin), name_, plain_text(before["sha256"]),
                                  plain_text(plugin["sha256"])));
  }
  const json program = context().value("program_sha256", json());
  if (program.is_string() && program != now.at("program_sha256"))
    texts.push_back(fmt::format("regatta is another binary than in {} (SHA-256 {:.12}…, now {:.12}…)", name_,
                                plain_text(program), plain_text(now["program_sha256"])));
  return texts;
}

} // namespace regatta
