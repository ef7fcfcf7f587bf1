// SPDX-License-Identifier: Apache-2.0
#include "config/reports.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "config/cell_template.hpp"
#include "config/report_values.hpp"
#include "config/schema_rules.hpp"

namespace regatta {
namespace {

using nlohmann::json;

struct report_key {
  const char *name, *help;
};

constexpr report_key report_keys[] = {
    {"title", "the table's title"},
    {"rows", "the key whose values head the rows"},
    {"columns", "the key whose values head the columns"},
    {"value",
     "a figure, e.g. samples_per_second (a path in an entry of result.json), a list of figures, or a text with "
     "figures in braces: \"{samples_per_second} ({efficiency:%})\"; formats: .2, %, .0%, x (ratio)"},
    {"list", "a key whose values stand side by side in a cell: 228/427/802"},
    {"ratio_to", "the reference of ratios: { \"cluster.workers\" = 1 } divides by the case that differs in this only"},
    {"where", "shows only the cases with these values: { \"model.plugin\" = \"vgg16\" }"},
    {"labels", "other words for keys, figures, and the texts of rows and columns: { allreduce = \"replicated\" }"},
    {"context", "[[report.context]]: a row of figures that others have published"},
};
constexpr report_key context_keys[] = {
    {"row", "the row's name"},
    {"source", "who published the figures and where; shown below the table"},
    {"values",
     "by column: a number, a list with a number for each figure of the cell, or a text: { 1 = 228, 2 = 427 }"},
    {"ratio", "true: its ratios are computed from its own figures; false: values has the published ones"},
};

template <std::size_t n> std::vector<std::string> names_of(const report_key (&table)[n]) {
  std::vector<std::string> names;
  for (const report_key& k : table) names.emplace_back(k.name);
  return names;
}

origin place(const toml_node& node) {
  return {node.at.line ? "" : "--set", node.at};
}
origin place_of_key(const toml_node& node) {
  return {node.key.line ? "" : "--set", node.key};
}

// The scalars of a table by their paths, so that "cluster.workers" = 1 and cluster.workers = 1 are alike.
void flatten(const toml_node& table, const std::string& path, std::vector<std::pair<std::string, toml_node>>& to) {
  for (const auto& [name, node] : table.members) {
    const std::string inner = path.empty() ? name : path + "." + name;
    if (node.is == toml_node::kind::table)
      flatten(node, inner, to);
    else
      to.emplace_back(inner, node);
  }
}

class report_parser {
public:
  report_parser(const is_key& key, diagnostics& wrong) : is_key_(key), wrong_(wrong) {}

  json table(const toml_node& node) {
    report_ = json::object();
    const auto names = names_of(report_keys);
    for (const auto& [name, member] : node.members)
      if (std::ranges::find(names, name) == names.end())
        unknown("report", "[report]", name, member, names);
      else
        take(name, member);
    check_complete(node);
    check_value(node);
    if (const toml_node* all = node.find("context"); all && report_.contains("context"))
      for (std::size_t i = 0; i < all->items.size(); ++i) check_ratio(all->items[i], report_["context"][i]);
    return std::move(report_);
  }

private:
  void unknown(const std::string& path, const std::string& title, const std::string& name, const toml_node& node,
               const std::vector<std::string>& names) {
    const std::string near = nearest(name, names), safe = one_line(name);
    wrong_.add(place_of_key(node), path + "." + safe,
               near.empty() ? fmt::format("no such key; {} has {}", title, join(names))
                            : fmt::format("no such key, did you mean \"{}.{}\"?", path, near));
  }

  void expected(const toml_node& node, const std::string& path, const std::string& what) {
    wrong_.add(place(node), path, fmt::format("expected {}, got {}", what, quoted(node)));
  }

  // Stores a text that is not empty.
  bool text(const toml_node& node, const std::string& path, const std::string& what, json& to) {
    if (!node.scalar.is_string() || node.scalar.get_ref<const std::string&>().empty()) {
      expected(node, path, what);
      return false;
    }
    to = node.scalar;
    return true;
  }

  void take(const std::string& name, const toml_node& node) {
    const std::string path = "report." + name;
    if (name == "title") {
      text(node, path, "a text", report_[name]);
    } else if (name == "rows" || name == "columns" || name == "list") {
      if (text(node, path, "a key such as \"train.batch\"", report_[name]) && !is_key_(report_[name]))
        expected(node, path, "a key such as \"train.batch\"");
    } else if (name == "value") {
      report_[name] = value_of(node); // check_value() needs the whole table
    } else if (name == "ratio_to" || name == "where") {
      report_[name] = settings_of(node, path);
    } else if (name == "labels") {
      report_[name] = labels_of(node);
    } else {
      contexts(node);
    }
  }

  // Returns the values of keys: {"cluster.workers": 1}.
  json settings_of(const toml_node& node, const std::string& path) {
    json values = json::object();
    std::vector<std::pair<std::string, toml_node>> members;
    flatten(node, "", members);
    if (node.is != toml_node::kind::table || members.empty())
      expected(node, path, "a table with the value of a key, such as { \"cluster.workers\" = 1 }");
    for (const auto& [name, member] : members) {
      if (!is_key_(name))
        wrong_.add(place_of_key(member), path,
                   fmt::format("expected a key such as \"cluster.workers\", got {}", toml_literal(one_line(name))));
      values[name] = value_of(member);
      if (values[name].is_null()) expected(member, path, "a number, a text, true or false");
    }
    return values;
  }

  json labels_of(const toml_node& node) {
    json labels = json::object();
    std::vector<std::pair<std::string, toml_node>> members;
    flatten(node, "", members);
    if (node.is != toml_node::kind::table)
      expected(node, "report.labels", "a table of texts, such as { \"cluster.workers\" = \"GPUs\" }");
    for (const auto& [name, member] : members) {
      text(member, "report.labels", fmt::format("a text for {}", toml_literal(one_line(name))), labels[name]);
      // A name in a section is not the text of a row or column, but a key that was misspelt.
      const auto sections = section_names();
      const auto first = std::ranges::find(sections, name.substr(0, name.find('.')));
      if (name.find('.') != std::string::npos && first != sections.end() && !is_key_(name) && !is_report_value(name))
        wrong_.add(place_of_key(member), "report.labels",
                   fmt::format("expected a key, a figure, or the text of a row or column, got {}{}",
                               toml_literal(one_line(name)), did_you_mean(name, report_values())));
    }
    return labels;
  }

  // A table has rows, columns and a value.
  void check_complete(const toml_node& node) {
    std::vector<std::string> missing;
    const toml_node* given = nullptr;
    std::string name = "report";
    for (const char* key : {"rows", "columns", "value"}) {
      const toml_node* member = node.find(key);
      if (!member) missing.push_back(std::string("report.") + key);
      if (!member || given) continue;
      given = member;
      name += std::string(".") + key;
    }
    if (missing.empty()) return;
    wrong_.add(place(given ? *given : node), name,
               fmt::format("expected {}{}: a table has rows, columns and a value",
                           join(missing, missing.size() > 2 ? ", " : " and "), given ? " beside it" : ""));
  }

  // Checks the figures of report.value, at the position of the figure in a list.
  void check_value(const toml_node& node) {
    const toml_node* value = node.find("value");
    if (!value) return;
    try {
      cell_ = cell_template_of(report_["value"], report_.contains("ratio_to"));
    } catch (const cell_error& e) {
      return wrong_.add(place(*value), "report.value", e.what());
    }
    for (std::size_t i = 0; i < cell_.figures.size(); ++i) {
      const std::string& path = cell_.figures[i].path;
      if (is_key_(path) || is_report_value(path)) continue;
      wrong_.add(place(i < value->items.size() ? value->items[i] : *value), "report.value",
                 fmt::format("expected a figure that a result has, such as \"samples_per_second\", or a key such as "
                             "\"train.batch\", got {}{}",
                             toml_literal(one_line(path)), did_you_mean(path, report_values())));
    }
  }

  void contexts(const toml_node& node) {
    const auto is_table = [](const toml_node& n) { return n.is == toml_node::kind::table; };
    if (node.is != toml_node::kind::array || !std::ranges::all_of(node.items, is_table))
      return expected(node, "report.context", "tables, each under [[report.context]]");
    report_["context"] = json::array();
    for (const toml_node& one : node.items) report_["context"].push_back(context(one));
  }

  json context(const toml_node& node) {
    json row = {{"ratio", false}};
    const auto names = names_of(context_keys);
    for (const char* needed : {"row", "source", "values"})
      if (!node.find(needed))
        wrong_.add(place(node), std::string("report.context.") + needed,
                   "must be given: published figures have a row, a source and values");
    for (const auto& [name, member] : node.members) {
      const std::string path = "report.context." + name;
      if (std::ranges::find(names, name) == names.end())
        unknown("report.context", "[[report.context]]", name, member, names);
      else if (name == "values")
        row[name] = published(member);
      else if (name == "ratio" && !member.scalar.is_boolean())
        expected(member, path, "true or false");
      else if (name == "ratio")
        row[name] = member.scalar;
      else
        text(member, path, "a text", row[name]);
    }
    return row;
  }

  json published(const toml_node& node) {
    json values = json::object();
    std::vector<std::pair<std::string, toml_node>> members;
    flatten(node, "", members);
    if (node.is != toml_node::kind::table || members.empty())
      expected(node, "report.context.values", "a table with a value for each column, such as { 1 = 228, 2 = 427 }");
    for (const auto& [column, member] : members) {
      const json value = value_of(member);
      const auto fits = [](const json& v) { return v.is_number() || v.is_string(); };
      if (!fits(value) && !(value.is_array() && !value.empty() && std::ranges::all_of(value, fits)))
        expected(member, "report.context.values", "a number, a text, or a list of them");
      values[column] = value;
    }
    return values;
  }

  // A published row has a number for each figure of a cell; those that are computed from the others are not given.
  void check_ratio(const toml_node& node, const json& row) {
    const bool computes = row.value("ratio", false);
    const json ratio_to = report_.value("ratio_to", json::object());
    const bool by_axis = ratio_to.size() == 1 && (report_.value("rows", json()) == ratio_to.begin().key() ||
                                                  report_.value("columns", json()) == ratio_to.begin().key());
    if (computes && !by_axis)
      wrong_.add(place(*node.find("ratio")), "report.context.ratio",
                 "expected report.ratio_to with the key of the rows or of the columns: the reference must be in the "
                 "published figures");
    const auto numbers = static_cast<std::size_t>(std::ranges::count_if(
        cell_.figures, [&](const cell_figure& f) { return !computes || f.is != cell_figure::style::ratio; }));
    const std::size_t needed = numbers > 0 ? numbers : cell_.figures.size(); // of ratios alone: the numbers to divide
    const toml_node* values = node.find("values");
    if (!values || cell_.figures.empty() || report_.contains("list")) return;
    std::vector<std::pair<std::string, toml_node>> members;
    flatten(*values, "", members);
    for (const auto& [column, member] : members) {
      const std::size_t given = member.is == toml_node::kind::array ? member.items.size() : 1;
      if (!member.scalar.is_string() && given != needed)
        expected(member, "report.context.values",
                 fmt::format("{} number{} as report.value has, or a text", needed, needed == 1 ? "" : "s"));
    }
  }

  const is_key& is_key_;
  diagnostics& wrong_;
  json report_;
  cell_template cell_;
};

} // namespace

json parse_reports(const toml_node& node, const is_key& key, diagnostics& wrong) {
  const auto is_table = [](const toml_node& n) { return n.is == toml_node::kind::table; };
  json reports = json::array();
  const bool several = node.is == toml_node::kind::array && std::ranges::all_of(node.items, is_table);
  if (!several && !is_table(node)) {
    wrong.add(place(node), "report", fmt::format("expected a table, got {}", quoted(node)));
    return reports;
  }
  const std::vector<toml_node> one{several ? toml_node() : node};
  for (const toml_node& table : several ? node.items : one) reports.push_back(report_parser(key, wrong).table(table));
  return reports;
}

json load_reports(const std::filesystem::path& file, const is_key& key) {
  diagnostics wrong(one_line(file.string()));
  json reports = json::array();
  try {
    const toml_node root = parse_toml(read_text(file));
    const toml_node* node = root.find("report");
    if (node) reports = parse_reports(*node, key, wrong);
    if (wrong.none() && reports.empty())
      wrong.add({{}, {1, 1}}, "report", "expected [report] or [[report]] in this file, found none");
  } catch (const toml_error& e) {
    wrong.add({{}, e.at()}, {}, e.what());
  }
  if (!wrong.none()) wrong.raise({});
  return reports;
}

std::string reports_text() {
  std::string text = "[report]           a table of the results in the form of a publication; [[report]]: several\n";
  for (const report_key& k : report_keys) text += fmt::format("  {:<20} {}\n", k.name, k.help);
  text += "[[report.context]] figures of others, marked as theirs\n";
  for (const report_key& k : context_keys) text += fmt::format("  {:<20} {}\n", k.name, k.help);
  return text;
}

} // namespace regatta
