// SPDX-License-Identifier: Apache-2.0
#include "config/settings.hpp"
#include "config/schema_rules.hpp"

#include "base/text.hpp"
#include "config/parameter_check.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {
namespace {

bool is_bare(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Appends a name to a path. A name that contains a dot is quoted, so that it matches no key.
std::string extended(const std::string& path, const std::string& name) {
  const std::string part = is_bare(name) ? name : toml_literal(name);
  return path.empty() ? part : path + "." + part;
}

std::vector<std::string> keys_of(const std::string& section) {
  std::vector<std::string> names;
  for (const schema_key& key : schema())
    if (key.section() == section) names.push_back(key.leaf());
  return names;
}

// Returns true if keys of the schema stand in a table of this name: "optimizer.schedule".
bool is_inner_table(const std::string& path) {
  return std::ranges::any_of(schema(), [&](const schema_key& key) { return key.path().starts_with(path + "."); });
}

bool among_sections(const std::string& name) {
  return std::ranges::count(section_names(), name) > 0;
}

// Returns a suggestion for a name that stands outside every section or in the wrong one.
std::string hint_for(const std::string& path) {
  const std::vector<std::string> parts = split(path, '.');
  if (parts.size() >= 2) {
    const auto& section = parts[0];
    if (among_sections(section)) {
      const std::string near = nearest(path.substr(section.size() + 1), keys_of(section));
      if (!near.empty()) return fmt::format(", did you mean \"{}.{}\"?", section, near);
    } else if (const std::string near = nearest(section, section_names()); !near.empty()) {
      return fmt::format(", did you mean \"{}\"?", near + path.substr(section.size()));
    }
  } else if (std::string hint = did_you_mean(parts[0], section_names()); !hint.empty()) {
    return hint;
  }
  for (const schema_key& key : schema())
    if (key.leaf() == parts.back() && key.leaf() != "plugin") return fmt::format(", did you mean \"{}\"?", key.path());
  if (parts.size() >= 2 && !keys_of(parts[0]).empty())
    return fmt::format("; [{}] has {}", parts[0], join(keys_of(parts[0])));
  return fmt::format("; there are {}", join(section_names()));
}

bool known_id(kind s, const std::string& id, const std::string& path, const origin& from, const catalogue& components,
              diagnostics& wrong) {
  if (components.parameters(s, id)) return true;
  const auto ids = components.ids(s);
  wrong.add(from, path,
            fmt::format("expected a parameter or the id of a {} ({}), got the table \"{}\"{}", name_of(s),
                        ids_text(components, s), one_line(id), did_you_mean(id, ids)));
  return false;
}

// Walks the tree of a file or of a --set, down to the values.
class collector {
public:
  collector(const catalogue& components, diagnostics& wrong) : components_(components), wrong_(wrong) {}

  settings take(const toml_node& root, const overrides& o) {
    for (const auto& [name, node] : root.members) {
      if (node.is == toml_node::kind::table) all_.sections.emplace(name, node.at);
      if (name == "sweep")
        take_sweeps(node);
      else if (name == "claim")
        all_.claims = node;
      else if (name == "report")
        all_.report = node;
      else
        take(extended("", name), node, setting::layer::file, {});
    }
    all_.from_options = !o.set.empty() || !o.sweep.empty();
    for (const std::string& text : o.set) take_set(text);
    for (const std::string& text : o.sweep) take_sweep_option(text);
    std::erase_if(all_.axes, [](const axis& a) { return a.keys.empty(); });
    for (axis& a : all_.axes)
      std::erase_if(a.keys, [&](const swept_key& k) {
        if (k.values.size() == a.length()) return false;
        wrong_.add(
            k.from, k.path,
            fmt::format("expected {} values, as many as {} has, got {}", a.length(), a.keys[0].path, k.values.size()));
        all_.spoiled.insert(k.path);
        return true;
      });
    return std::move(all_);
  }

private:
  void take(const std::string& path, const toml_node& node, setting::layer layer, const std::string& option) {
    const auto parts = split(path, '.');
    const origin at_key{option, node.key}, at_value{option, node.at};
    const auto plugins = find_plugin_section(parts[0]);
    const bool is_section = parts.size() == 1 && among_sections(parts[0]);
    if (is_section && node.is != toml_node::kind::table) {
      wrong_.add(at_value, path,
                 fmt::format("expected a table, got {}{}", quoted(node),
                             plugins ? fmt::format(", did you mean \"{}.plugin\"?", path) : ""));
    } else if (is_section || (node.is == toml_node::kind::table && is_inner_table(path))) {
      for (const auto& [name, member] : node.members) take(extended(path, name), member, layer, option);
    } else if (plugins && parts.size() == 2 && node.is == toml_node::kind::table && parts[1] != "plugin") {
      if (known_id(*plugins, parts[1], path, at_key, components_, wrong_))
        for (const auto& [name, member] : node.members) take(extended(path, name), member, layer, option);
    } else if (const auto name = find_name(path, at_key, components_, wrong_)) {
      if (layer == setting::layer::set) drop_sweeps_of(path);
      setting s{node, at_value, layer};
      if (fits(path, *name, s))
        all_.values.insert_or_assign(path, std::move(s));
      else
        all_.spoiled.insert(path);
    }
  }

  // A parameter in a table without id is checked once a case has chosen its plugin.
  bool fits(const std::string& path, const key_name& name, const setting& s) {
    if (!name.key && name.id.empty()) return true;
    if (!name.key) {
      const auto problem = check_parameter(components_, *name.section, name.id, name.parameter, s.node);
      if (!problem) return true;
      const bool at_key = problem->of_name && s.node.key.line;
      wrong_.add(at_key ? origin{s.from.option, s.node.key} : s.from, path, problem->text);
      return false;
    }
    if (accept(*name.key, value_of(s.node))) return true;
    wrong_.add(s.from, path,
               fmt::format("expected {}, got {}{}", expectation(*name.key), quoted(s.node),
                           near_choice(name.key->rule, s.node)));
    return false;
  }

  bool is_text(const std::string& text, const char* option) {
    if (is_utf8(text)) return true;
    wrong_.add({option, {}}, {}, "expected UTF-8 text");
    return false;
  }

  void take_set(const std::string& text) {
    if (!is_text(text, "--set")) return;
    const auto parsed = parse_set(text);
    if (!parsed) return wrong_.add({"--set", {}}, text, "expected PATH=VALUE, as in --set train.batch=64");
    const auto& [path, value] = *parsed;
    if (split(path, '.')[0] == "sweep")
      return wrong_.add({"--set", {}}, path, "a sweep is given by --sweep PATH=VALUE,VALUE,...");
    if (split(path, '.')[0] == "report") return set_report(path, value.node);
    take(path, value.node, setting::layer::set, "--set");
  }

  // Replaces a key of the file's only [report]; makes that table if there is none.
  void set_report(const std::string& path, toml_node value) {
    const std::string name = path.substr(std::min(path.size(), std::string("report.").size()));
    if (all_.report && all_.report->is == toml_node::kind::array && all_.report->items.size() == 1)
      all_.report = toml_node(all_.report->items[0]);
    if (name.empty() || (all_.report && all_.report->is != toml_node::kind::table))
      return wrong_.add({"--set", {}}, path,
                        "expected report.KEY=VALUE, and a file with one [report]; `regatta report RESULT --report "
                        "FILE.toml` shows the tables of another file");
    forget_positions(value);
    if (!all_.report) all_.report.emplace().is = toml_node::kind::table;
    std::erase_if(all_.report->members, [&](const toml_member& m) { return m.name == name; });
    all_.report->members.push_back({name, std::move(value)});
  }

  static void forget_positions(toml_node& node) {
    node.key = node.at = {};
    for (toml_node& item : node.items) forget_positions(item);
    for (toml_member& member : node.members) forget_positions(member.node);
  }

  void take_sweep_option(const std::string& text) {
    if (!is_text(text, "--sweep")) return;
    const auto equals = text.find('=');
    const origin from{"--sweep", {}};
    if (equals == std::string::npos || equals == 0)
      return wrong_.add(from, text, "expected PATH=VALUE,VALUE,..., as in --sweep train.batch=32,64");
    const std::string path = one_line(text.substr(0, equals));
    swept_key key{path, from, {}};
    for (const std::string& item : split_values(text.substr(equals + 1))) {
      const auto value = parse_set(path + "=" + item);
      if (item.empty() || !value) return wrong_.add(from, path, "expected values between the commas");
      key.values.push_back({value->second.node, from, setting::layer::sweep});
    }
    if (!swept_by_option_.insert(path).second) return wrong_.add(from, path, "is given twice");
    if (const auto given = all_.values.find(path);
        given != all_.values.end() && given->second.from_layer == setting::layer::set)
      return wrong_.add(from, path, "is given by --set too");
    if (!check_swept(key)) return;
    // Replace the file's sweep of the same key in place, so that the order of the cases stays.
    for (axis& a : all_.axes)
      if (a.keys.size() == 1 && a.keys[0].path == path) {
        a.keys[0] = std::move(key);
        return;
      }
    drop_sweeps_of(path);
    all_.axes.push_back({from, {std::move(key)}});
  }

  // Splits at commas outside brackets and quotes.
  static std::vector<std::string> split_values(const std::string& text) {
    std::vector<std::string> items(1);
    int depth = 0;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quote) {
        if (c == '\\' && quote == '"' && i + 1 < text.size())
          items.back() += text[i++];
        else if (c == quote)
          quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '[' || c == '{') {
        ++depth;
      } else if (c == ']' || c == '}') {
        --depth;
      } else if (c == ',' && depth <= 0) {
        items.emplace_back();
        continue;
      }
      items.back() += text[i];
    }
    return items;
  }

  void drop_sweeps_of(const std::string& path) {
    for (axis& a : all_.axes) std::erase_if(a.keys, [&](const swept_key& k) { return k.path == path; });
  }

  void take_sweeps(const toml_node& sweep) {
    if (sweep.is != toml_node::kind::table)
      return wrong_.add({{}, sweep.at}, "sweep", fmt::format("expected a table, got {}", quoted(sweep)));
    for (const auto& [name, node] : sweep.members) {
      if (name == "zip") {
        take_zips(node);
        continue;
      }
      for (swept_key& key : swept_keys(name, node)) all_.axes.push_back({key.from, {std::move(key)}});
    }
  }

  void take_zips(const toml_node& zips) {
    const auto is_table = [](const toml_node& n) { return n.is == toml_node::kind::table; };
    if (zips.is != toml_node::kind::array || !std::all_of(zips.items.begin(), zips.items.end(), is_table))
      return wrong_.add({{}, zips.at}, "sweep.zip",
                        fmt::format("expected tables, each under [[sweep.zip]], got {}", quoted(zips)));
    for (const toml_node& table : zips.items) {
      axis a{{{}, table.at}, {}};
      for (const auto& [name, node] : table.members)
        for (swept_key& key : swept_keys(name, node)) a.keys.push_back(std::move(key));
      all_.axes.push_back(std::move(a));
    }
  }

  // Accepts "train.batch" = [..], and train.batch = [..], which TOML reads as nested tables.
  std::vector<swept_key> swept_keys(const std::string& path, const toml_node& node) {
    std::vector<swept_key> keys;
    const origin from{{}, node.key};
    if (node.is == toml_node::kind::table) {
      for (const auto& [name, member] : node.members)
        for (swept_key& key : swept_keys(path + "." + name, member)) keys.push_back(std::move(key));
    } else if (node.is != toml_node::kind::array || node.items.empty()) {
      wrong_.add({{}, node.at}, path, fmt::format("expected a list of values to sweep, got {}", quoted(node)));
    } else {
      swept_key key{path, from, {}};
      for (const toml_node& item : node.items) key.values.push_back({item, {{}, item.at}, setting::layer::sweep});
      if (!swept_in_file_.insert(path).second)
        wrong_.add(from, path, "is swept twice");
      else if (check_swept(key))
        keys.push_back(std::move(key));
    }
    return keys;
  }

  bool check_swept(const swept_key& key) {
    if (key.path.starts_with("report.")) {
      wrong_.add(key.from, key.path, "cannot be swept");
      return false;
    }
    const auto name = find_name(key.path, key.from, components_, wrong_);
    if (!name) return false;
    all_.spoiled.insert(key.path); // until all its values fit
    if (name->key && !name->key->sweepable) {
      wrong_.add(key.from, key.path, "cannot be swept");
      return false;
    }
    bool all_fit = true;
    for (const setting& s : key.values) all_fit = fits(key.path, *name, s) && all_fit;
    if (all_fit) all_.spoiled.erase(key.path);
    return all_fit;
  }

  const catalogue& components_;
  diagnostics& wrong_;
  settings all_;
  std::set<std::string> swept_in_file_, swept_by_option_;
};

} // namespace

std::string ids_text(const catalogue& components, kind s) {
  auto ids = components.ids(s);
  std::sort(ids.begin(), ids.end());
  return ids.empty() ? "there is none" : join(ids);
}

std::optional<key_name> find_name(const std::string& path, const origin& from, const catalogue& components,
                                  diagnostics& wrong) {
  if (const schema_key* key = find_key(path)) return key_name{key, {}, {}, {}};
  const auto parts = split(path, '.');
  const auto section = find_plugin_section(parts[0]);
  const bool bare = std::all_of(parts.begin(), parts.end(), is_bare);
  if (section && bare && parts.size() == 2) return key_name{nullptr, section, {}, parts[1]};
  if (section && bare && parts.size() == 3) {
    if (!known_id(*section, parts[1], path, from, components, wrong)) return {};
    return key_name{nullptr, section, parts[1], parts[2]};
  }
  wrong.add(from, path, "no such key" + hint_for(path));
  return {};
}

settings collect(const toml_node& root, const overrides& o, const catalogue& components, diagnostics& wrong) {
  return collector(components, wrong).take(root, o);
}

std::optional<std::pair<std::string, setting>> parse_set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return {};
  const std::string path = one_line(text.substr(0, equals)), value = text.substr(equals + 1);
  if (path.empty()) return {};
  setting s;
  s.from_layer = setting::layer::set;
  s.node.scalar = value;
  try {
    const toml_node parsed = parse_toml("value = " + value);
    if (parsed.members.size() == 1) s.node = parsed.members[0].node;
  } catch (const toml_error&) {
    // A string without quotes: the shell removed them.
  }
  return std::pair(path, std::move(s));
}

} // namespace regatta
