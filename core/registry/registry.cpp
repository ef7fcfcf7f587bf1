// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/description.hpp"
#include "registry/elf.hpp"
#include "registry/inspect.hpp"
#include "registry/run_in_child.hpp"
#include "registry/sha256.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr std::array kind_names{
    std::pair{kind::model, std::string_view("model")}, std::pair{kind::executor, std::string_view("executor")},
    std::pair{kind::transport, std::string_view("transport")}, std::pair{kind::strategy, std::string_view("strategy")}};

std::vector<fs::path> plugins_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  fs::directory_iterator it(folder, ec), end;
  for (; !ec && it != end; it.increment(ec))
    if (it->path().extension() == ".so") files.push_back(it->path());
  if (ec)
    throw failure(exit_code::plugin,
                  fmt::format("{}: the plugin folder cannot be read: {}", folder.string(), ec.message()));
  std::sort(files.begin(), files.end());
  return files;
}

struct opened_file {
  fs::path file;
  loaded_plugin plugin;
};

// Returns the same label for the same kind and id, regardless of the file.
std::string label_of(const component& c) {
  return fmt::format("{} {}", name_of(c.kind), c.id);
}

} // namespace

std::string_view name_of(kind k) {
  for (const auto& [value, name] : kind_names)
    if (value == k) return name;
  return "component";
}

std::string plural_of(kind k) {
  return k == kind::strategy ? "strategies" : std::string(name_of(k)) + 's';
}

std::optional<kind> kind_of(std::string_view name) noexcept {
  for (const auto& [value, singular] : kind_names)
    if (name == singular || name == plural_of(value)) return value;
  return std::nullopt;
}

// ----------------------------------------------------------------------------------------------------- loading ---

struct registry::state {
  std::vector<component> components;
  std::vector<unusable> failures;
  std::vector<shadowed> hidden;
  std::set<fs::path> seen; // canonical paths: a folder that is given twice, or a link to a plugin, counts once
  // Texts of components that a child described. Registries that loading() returns share them.
  std::shared_ptr<description_texts> texts = std::make_shared<description_texts>();
  std::optional<std::set<fs::path>> loaded; // files that find() has loaded; nullopt: it loads none

  void refuse(const fs::path& file, const std::string& reason) { failures.push_back({file, one_line(reason)}); }

  // Adds files of equal precedence: the files of one folder, or files that are given one by one.
  void add(const std::vector<fs::path>& files, trust t) {
    std::vector<opened_file> opened;
    for (const auto& given : files) {
      const auto file = fs::absolute(given).lexically_normal();
      std::error_code ec;
      const auto canonical = fs::canonical(file, ec);
      if (!ec && !seen.insert(canonical).second) continue;
      try {
        opened.push_back({file, open(file, t)});
      } catch (const std::exception& e) {
        refuse(file, e.what());
      }
    }
    refuse_twins(opened);
    for (auto& o : opened) accept(o);
  }

  loaded_plugin open(const fs::path& file, trust t) {
    if (auto why = elf_problem(file); !why.empty()) throw failure(exit_code::plugin, why);
    if (t == trust::tried) return load_plugin(file);
    return plugin_from_json(run_in_child([&](const stage_function& stage) {
                              return try_plugin(file, [&](const char* doing) { stage("", doing); });
                            }),
                            file, *texts);
  }

  // Loads this component's file and replaces the null function pointers of its components.
  void load(const component& wanted) {
    if (!loaded || loaded->count(wanted.file)) return;
    for (const component& fresh : load_plugin(wanted.file).components)
      for (component& c : components)
        if (c.file == fresh.file && c.kind == fresh.kind && c.id == fresh.id) c = fresh;
    loaded->insert(wanted.file);
  }

  // If two files of equal precedence hold the same component, no rule that a user can see chooses one: refuse both.
  void refuse_twins(std::vector<opened_file>& opened) {
    std::map<std::string, std::vector<fs::path>> holders;
    for (const auto& o : opened)
      for (const auto& c : o.plugin.components) holders[label_of(c)].push_back(o.file);
    std::erase_if(opened, [&](const opened_file& o) {
      for (const auto& c : o.plugin.components) {
        const auto& all = holders[label_of(c)];
        if (all.size() < 2) continue;
        const auto& other = all[0] == o.file ? all[1] : all[0];
        refuse(o.file, fmt::format("holds {}, as {} does: remove one of the two, or give it another id", label_of(c),
                                   other.filename().string()));
        return true;
      }
      return false;
    });
  }

  void accept(opened_file& o) {
    if (auto why = clash(o.plugin.components); !why.empty()) return refuse(o.file, why);
    for (auto& why : o.plugin.unknown) refuse(o.file, why);
    for (auto& c : o.plugin.components) {
      const auto* first = lookup(c.kind, c.id);
      if (first)
        hidden.push_back({c.kind, c.id, c.file, first->file});
      else
        components.push_back(std::move(c));
    }
  }

  // [strategy.ID] is a table of ID's parameters, and [strategy] holds parameters of the chosen strategy: a parameter
  // with the name of an id would make the two ambiguous. The plugin that is added later is refused.
  std::string clash(const std::vector<component>& added) const {
    auto parameter_like = [](const component& c, const component& by_id) {
      return c.kind == by_id.kind && std::any_of(c.parameters.begin(), c.parameters.end(),
                                                 [&](const rg_param& p) { return p.name == by_id.id; });
    };
    auto between = [&](const component& mine, const component& other) -> std::string {
      if (parameter_like(mine, other))
        return fmt::format("{}: its parameter {} is named like {}: rename it", label_of(mine), other.id,
                           label_of(other));
      if (parameter_like(other, mine))
        return fmt::format("{}: {} has a parameter of this name: give it another id", label_of(mine), label_of(other));
      return {};
    };
    for (const auto& mine : added) {
      for (const auto* all : {&components, &added})
        for (const auto& other : *all)
          if (auto why = between(mine, other); !why.empty()) return why;
    }
    return {};
  }

  const component* lookup(enum kind k, std::string_view id) const {
    for (const auto& c : components)
      if (c.kind == k && c.id == id) return &c;
    return nullptr;
  }
};

registry::registry(std::unique_ptr<state> s) : state_(std::move(s)) {}
registry::~registry() = default;
registry::registry(registry&&) noexcept = default;

registry::registry(const std::vector<fs::path>& paths) : state_(std::make_unique<state>()) {
  for (const auto& path : paths)
    state_->add(fs::is_regular_file(path) ? std::vector{path} : plugins_in(path), trust::untried);
}

registry registry::of_files(const std::vector<fs::path>& files, trust t) {
  auto s = std::make_unique<state>();
  s->add(files, t);
  return registry(std::move(s));
}

registry registry::loading() const {
  auto s = std::make_unique<state>(*state_);
  s->loaded.emplace();
  return registry(std::move(s));
}

const std::vector<component>& registry::components() const {
  return state_->components;
}
const std::vector<unusable>& registry::failures() const {
  return state_->failures;
}
const std::vector<shadowed>& registry::hidden() const {
  return state_->hidden;
}

const component& registry::find(enum kind k, std::string_view id) const {
  const component& c = described(k, id);
  state_->load(c);
  return c;
}

const component& registry::described(enum kind k, std::string_view id) const {
  if (const auto* c = state_->lookup(k, id)) return *c;
  // A plugin's file commonly has the name of its component, so its failure is probably the reason.
  const auto wanted = fmt::format("{} \"{}\"", name_of(k), one_line(id));
  for (const auto& f : state_->failures)
    if (f.file.stem().string() == id)
      throw failure(exit_code::plugin, fmt::format("{}: {}: {}", wanted, f.file.string(), f.reason));
  std::vector<std::string> there;
  for (const auto& c : state_->components)
    if (c.kind == k) there.push_back(c.id);
  std::sort(there.begin(), there.end());
  auto text = fmt::format("there is no {}{}", wanted, did_you_mean(id, there));
  text += there.empty() ? fmt::format(" (no {} were found: see `regatta list`)", plural_of(k))
                        : fmt::format(" (there is {})", join(there));
  for (const auto& f : state_->failures) text += fmt::format("; not usable: {}: {}", f.file.string(), f.reason);
  text += "; name the file or folder of another one with --plugin-path or experiment.plugin_path";
  throw failure(exit_code::plugin, text);
}

// ----------------------------------------------------------------------------------------------------- folders ---

fs::path built_in_folder() {
  // Relative to the program, so that an installation can be moved.
  std::error_code ec;
  return (fs::read_symlink("/proc/self/exe", ec).parent_path() / "../lib/regatta").lexically_normal();
}

// ------------------------------------------------------------------------------------------------------ SHA-256 ---

std::string sha256_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw failure(exit_code::plugin, fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  sha256 sum;
  std::vector<char> buffer(1 << 16);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    sum.add({buffer.data(), static_cast<std::size_t>(in.gcount())});
  }
  if (!in.eof()) throw failure(exit_code::plugin, fmt::format("{}: cannot be read to its end", file.string()));
  return sum.hex();
}

} // namespace regatta
