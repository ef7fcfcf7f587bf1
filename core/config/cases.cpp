// SPDX-License-Identifier: Apache-2.0
#include "config/cases.hpp"
#include "config/schema_rules.hpp"

#include "base/text.hpp"
#include "config/effect.hpp"
#include "config/parameter_check.hpp"
#include "config/report_values.hpp"
#include "config/setting_positions.hpp"
#include "registry/parameters.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::size_t most_cases = 10'000;

// The settings of one case. A value of the sweep takes precedence over the same key elsewhere.
class point {
public:
  point(const settings& all, std::vector<std::pair<std::string, const setting*>> swept)
      : all_(all), swept_(std::move(swept)) {}

  const setting* find(const std::string& path) const {
    for (const auto& [name, s] : swept_)
      if (name == path) return s;
    const auto found = all_.values.find(path);
    return found == all_.values.end() ? nullptr : &found->second;
  }
  const std::vector<std::pair<std::string, const setting*>>& swept() const { return swept_; }
  bool spoiled(const std::string& path) const { return all_.spoiled.contains(path); }

  // Returns the position that an error about a key names: its value, else its section, else the start of the file.
  origin where(const std::string& path) const {
    if (const setting* s = find(path)) return s->from;
    const auto section = all_.sections.find(path.substr(0, path.find('.')));
    return {{}, section == all_.sections.end() ? position{1, 1} : section->second};
  }

  // Returns all settings of plugin parameters of a section, by path.
  std::map<std::string, const setting*> parameters(kind s) const {
    std::map<std::string, const setting*> found;
    const std::string prefix = std::string(name_of(s)) + ".";
    const auto counts = [&](const std::string& path) { return path.starts_with(prefix) && !find_key(path); };
    for (auto it = all_.values.lower_bound(prefix); it != all_.values.end() && it->first.starts_with(prefix); ++it)
      if (counts(it->first)) found[it->first] = &it->second;
    for (const auto& [path, setting] : swept_)
      if (counts(path)) found[path] = setting;
    return found;
  }

private:
  const settings& all_;
  std::vector<std::pair<std::string, const setting*>> swept_;
};

class case_maker {
public:
  case_maker(const catalogue& components, const folders& start, diagnostics& wrong)
      : components_(components), start_(start), wrong_(wrong) {}

  case_config make(const point& p, experiment& whole) {
    case_config c;
    c.name = whole.name;
    for (const schema_key& key : schema())
      if (const setting* s = p.find(key.path())) {
        const auto value = accept(key, value_of(s->node)); // collect() has dropped values that do not fit
        if (value) assign(key, *value, whole, c);
      }
    for (const auto& [path, key] : {std::pair{&c.data.path, "data.path"},
                                    {&c.data.evaluation_path, "data.evaluation_path"},
                                    {&c.data.vocabulary, "data.vocabulary"}})
      if (!path->empty()) *path = absolute_path(*path, p.where(key), start_);
    constexpr std::string_view folder = "{folder}";
    if (const auto at = c.data.producer.find(folder); at != std::string::npos)
      c.data.producer.replace(at, folder.size(), absolute_path("", p.where("data.producer"), start_));
    if (c.cluster.interface.empty()) wrong_.add(p.where("cluster.interface"), "cluster.interface", "must not be empty");
    for (const kind s : plugin_sections) choose(p, s, choice_of(c, s));
    check_batch(p, c);
    check_data(p, c);
    check_target(p, c);
    check_schedule(p, c);
    for (const auto& [path, s] : p.swept())
      if (counts(path, c)) c.swept.emplace_back(path, value_of(s->node));
    return c;
  }

  // Returns false for a swept parameter of a plugin that this case did not choose: it has no effect on the case.
  static bool counts(const std::string& path, const case_config& c) {
    const auto first = path.find('.'), second = path.find('.', first + 1);
    if (second == std::string::npos) return true;
    const auto section = find_plugin_section(path.substr(0, first));
    return !section || choice_of(c, *section).id == path.substr(first + 1, second - first - 1);
  }

private:
  void choose(const point& p, kind s, component_choice& choice) {
    const std::string section(name_of(s)), key = section + ".plugin";
    if (p.spoiled(key)) return;
    if (choice.id.empty()) return wrong_.add(p.where(key), key, "must be given: the id of a " + section + ids(s));
    const auto* table = components_.parameters(s, choice.id);
    if (!table)
      return wrong_.add_missing(p.where(key), key,
                                fmt::format("expected the id of a {}{}, got \"{}\"{}", section, ids(s),
                                            one_line(choice.id), did_you_mean(choice.id, components_.ids(s))));
    const std::string own = section + "." + choice.id + ".";
    std::map<std::string, std::pair<std::string, const setting*>> chosen; // by parameter: path and value
    for (const auto& [path, setting] : p.parameters(s)) {
      const bool of_id = path.starts_with(own);
      const std::string name = path.substr(of_id ? own.size() : section.size() + 1);
      if (name.find('.') != std::string::npos) continue; // the parameter of a plugin that is not chosen
      auto& [held_path, held] = chosen[name];
      // A table [section.ID] is more specific than [section], but the command line and sweeps take precedence over
      // both.
      if (!held || setting->from_layer > held->from_layer || (setting->from_layer == held->from_layer && of_id)) {
        held_path = path;
        held = setting;
      }
    }
    for (const auto& [name, given] : chosen) take(s, choice, *table, name, given.first, *given.second);
    for (const rg_param& parameter : *table)
      if (!chosen.contains(parameter.name) && !p.spoiled(own + parameter.name)) complete(p, section, choice, parameter);
  }

  void take(kind s, component_choice& choice, const std::vector<rg_param>& table, const std::string& name,
            const std::string& path, const setting& given) {
    if (const auto problem = check_parameter(components_, s, choice.id, name, given.node)) {
      const origin at_key{given.from.option, given.node.key.line ? given.node.key : given.from.at};
      return wrong_.add(problem->of_name ? at_key : given.from, path, problem->text);
    }
    const rg_param& parameter = *std::ranges::find_if(table, [&](const rg_param& r) { return name == r.name; });
    const auto value = accept(parameter, value_of(given.node));
    choice.parameters[name] = *value;
    if (given.from_layer != setting::layer::sweep && *value != default_of(parameter))
      choice.given[name] = value_of(given.node);
  }

  void complete(const point& p, const std::string& section, component_choice& choice, const rg_param& parameter) {
    json value = default_of(parameter);
    if (value.is_null())
      wrong_.add(p.where(section + ".plugin"), fmt::format("{}.{}", section, parameter.name),
                 fmt::format("must be given for {} \"{}\": {} ({})", section, choice.id, expectation(parameter),
                             one_line(parameter.help ? parameter.help : "")));
    else
      choice.parameters[parameter.name] = std::move(value);
  }

  std::string ids(kind s) const { return fmt::format(" ({})", ids_text(components_, s)); }

  void check_batch(const point& p, const case_config& c) {
    if (c.train.batch_unit != "samples") return; // the model decides how many samples that is
    const bool strong = c.train.scaling == "strong";
    const std::int64_t workers = strong ? c.cluster.workers : 1;
    const std::int64_t parts = workers * c.train.accumulate;
    if (c.train.batch % parts == 0) return;
    const std::string divisor = !strong                   ? fmt::format("train.accumulate ({})", c.train.accumulate)
                                : c.train.accumulate == 1 ? fmt::format("cluster.workers ({})", workers)
                                                          : fmt::format("cluster.workers x train.accumulate ({} x {})",
                                                                        workers, c.train.accumulate);
    wrong_.add(p.where("train.batch"), "train.batch",
               fmt::format("expected a multiple of {}{}, got {}", divisor,
                           strong ? " with train.scaling = \"strong\"" : "", c.train.batch));
  }

  void check_data(const point& p, const case_config& c) {
    if (c.data.source == "stream" && c.data.endpoint.empty())
      wrong_.add(p.where("data.source"), "data.endpoint",
                 "must be given with data.source = \"stream\": an address such as \"tcp://127.0.0.1:5599\"");
    const std::string source = c.data.source == "queue" ? "data.queue_source" : "data.source";
    const bool trained = c.data.sample_source() == "dataset";
    const bool evaluated = !c.data.evaluation_path.empty();
    if (!trained && !evaluated) return;
    const std::string why = trained ? source : "data.evaluation_path";
    const std::string with = trained ? source + " = \"dataset\"" : why;
    if (c.data.format.empty() && !p.spoiled("data.format"))
      wrong_.add(p.where(why), "data.format",
                 fmt::format("must be given with {}: {}", with, expectation(*find_key("data.format"))));
    // A run writes generated data before it reads it.
    std::error_code error;
    const bool written_first = c.data.generate && !c.data.path.empty() && !std::filesystem::exists(c.data.path, error);
    if (evaluated && !written_first) require_file(p, "data.evaluation_path", c.data.evaluation_path);
    if (!c.data.vocabulary.empty() && has_effect("data.vocabulary", c))
      require_file(p, "data.vocabulary", c.data.vocabulary);
    if (!has_effect("data.path", c)) return;
    if (written_first) return;
    if (!c.data.path.empty()) return require_file(p, "data.path", c.data.path);
    if (p.spoiled("data.path")) return;
    wrong_.add(p.where(why), "data.path",
               trained ? fmt::format("must be given with {}: a file or a folder", with)
                       : fmt::format("must be given with data.evaluation_path and data.format = \"{}\": the training "
                                     "data, from which vocabulary and classes are taken",
                                     c.data.format));
  }

  void require_file(const point& p, const std::string& key, const std::string& path) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return;
    wrong_.add(p.where(key), key,
               fmt::format("expected a file or a folder, got {}, {}; paths start at the file's folder, those of --set "
                           "at the working directory",
                           toml_literal(one_line(path)),
                           error ? "which cannot be read: " + error.message() : "which is not there"));
  }

  void check_target(const point& p, const case_config& c) {
    if (c.measure.target != 0 && c.measure.precision > 0 && !p.spoiled("measure.precision"))
      wrong_.add(p.where("measure.precision"), "measure.precision",
                 "expected measure.repeats in its place: with measure.target, measure.steps is a limit, which longer "
                 "runs would change");
    if (c.measure.target != 0 && c.data.evaluation_path.empty() && !p.spoiled("data.evaluation_path"))
      wrong_.add(p.where("measure.target"), "measure.target",
                 fmt::format("expected data.evaluation_path beside it, got {} and nothing to evaluate on: give a file "
                             "or a folder there, or leave the target out",
                             c.measure.target));
  }

  void check_schedule(const point& p, const case_config& c) {
    const schedule_config& s = c.optimizer.schedule;
    const std::string table = "optimizer.schedule.", with = fmt::format(" with schedule.name = \"{}\"", s.name);
    const auto expect = [&](bool fine, const char* key, const std::string& expected) {
      if (!fine && !p.spoiled(table + key))
        wrong_.add(p.where(table + key), table + key, "expected " + expected + with);
    };
    if (s.name == "step")
      expect(!s.milestones.empty() && std::ranges::is_sorted(s.milestones), "milestones",
             "a list of ascending numbers, at least one,");
    if (s.name == "linear") expect(s.length > s.warmup, "length", "more than the warm-up");
    if (s.name == "exponential") expect(s.every > 0, "every", "a number above 0");
    if (s.name == "noam") expect(s.warmup > 0, "warmup", "a number above 0");
    if (s.unit == "epoch" && c.data.sample_source() != "dataset" && !p.spoiled("data.source"))
      wrong_.add(p.where(table + "unit"), table + "unit",
                 fmt::format("expected \"step\": data.source = \"{}\" has no epochs", c.data.sample_source()));
  }

  const catalogue& components_;
  const folders& start_;
  diagnostics& wrong_;
};

// Returns true if `path` is a key of the schema, or a parameter of a plugin of its section.
bool names_a_key(const std::string& path, const catalogue& components) {
  diagnostics unknown("");
  const auto name = find_name(path, {}, components, unknown);
  if (!name || name->key) return name.has_value();
  const auto has = [&](const std::string& id) {
    const auto* table = components.parameters(*name->section, id);
    return table && std::ranges::any_of(*table, [&](const rg_param& p) { return name->parameter == p.name; });
  };
  return name->id.empty() ? std::ranges::any_of(components.ids(*name->section), has) : has(name->id);
}

void check_report(const point& base, const catalogue& components, const report_config& report, diagnostics& wrong) {
  const std::pair<const char*, const std::string*> parts[] = {
      {"report.rows", &report.rows}, {"report.columns", &report.columns}, {"report.value", &report.value}};
  std::vector<std::string> missing;
  for (const auto& [path, value] : parts)
    if (value->empty() && !base.spoiled(path)) missing.emplace_back(path);
  bool said = missing.empty();
  for (const auto& [path, value] : parts) {
    if (value->empty()) continue;
    if (!std::exchange(said, true))
      wrong.add(base.where(path), path,
                fmt::format("expected {} beside it: a table has rows, columns and a value", join(missing, " and ")));
    const bool figure = value == &report.value;
    if (names_a_key(*value, components) || (figure && is_report_value(*value))) continue;
    wrong.add(base.where(path), path,
              fmt::format("expected {}a key such as \"train.batch\", got {}{}",
                          figure ? "a figure that a result has, such as \"samples_per_second\", or " : "",
                          toml_literal(one_line(*value)), figure ? did_you_mean(*value, report_values()) : ""));
  }
}

void check_whole(const settings& all, const catalogue& components, const folders& start, experiment& out,
                 diagnostics& wrong) {
  const point base(all, {});
  for (std::string& folder : out.plugin_path)
    folder = absolute_path(folder, base.where("experiment.plugin_path"), start);
  const bool bad_name =
      out.name.empty() || out.name.size() > 100 || out.name[0] == '.' ||
      std::any_of(out.name.begin(), out.name.end(), [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7f; });
  if (bad_name)
    wrong.add(base.where("experiment.name"), "experiment.name",
              fmt::format("expected a name for a folder: up to 100 bytes without '/', not beginning with '.', got {}",
                          toml_literal(one_line(out.name.substr(0, 120)))));
  check_report(base, components, out.report, wrong);
}

} // namespace

std::string absolute_path(const std::string& path, const origin& from, const folders& start) {
  const auto& folder = from.option.empty() ? start.file : start.current;
  return (folder / path).lexically_normal().string();
}

void make_cases(const settings& all, const catalogue& components, const folders& start, experiment& out,
                diagnostics& wrong) {
  std::size_t count = 1;
  for (const axis& a : all.axes) {
    count *= a.length();
    if (count > most_cases)
      return wrong.add(a.from, "sweep", fmt::format("more than {} cases: sweep fewer values or keys", most_cases));
    for (const swept_key& k : a.keys) out.swept.push_back(k.path);
  }

  case_maker maker(components, start, wrong);
  const std::string file = one_line(out.file);
  const auto written = std::make_shared<const source_positions::map>(written_in(all, file));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::pair<std::string, const setting*>> swept;
    std::size_t stride = count;
    for (const axis& a : all.axes) {
      stride /= a.length();
      for (const swept_key& k : a.keys) swept.emplace_back(k.path, &k.values[i / stride % a.length()]);
    }
    source_positions where(file, written, written_in(swept, file));
    case_config c = maker.make(point(all, std::move(swept)), out);
    c.written = std::move(where);
    if (seen.insert(json(c.swept).dump()).second) out.cases.push_back(std::move(c));
  }
  out.name = out.cases.front().name;
  check_whole(all, components, start, out, wrong);
  if (wrong.none()) out.notices = without_effect(all, file, out.cases);
}

} // namespace regatta
