// SPDX-License-Identifier: Apache-2.0
#include "registry/inspect.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/description.hpp"
#include "registry/extension_tables.hpp"
#include "registry/parameters.hpp"
#include "registry/plugin_host.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#define BOOST_DLL_USE_STD_FS
#include <boost/core/demangle.hpp>
#include <boost/dll/shared_library.hpp>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <regatta/ext/device.h>
#include <regatta/ext/graph.h>
#include <regatta/ext/launcher.h>

namespace regatta {
namespace {

template <class... T> [[noreturn]] void refuse(fmt::format_string<T...> format, T&&... values) {
  throw failure(exit_code::plugin, fmt::format(format, std::forward<T>(values)...));
}

std::string or_empty(const char* text) {
  return text ? one_line(text) : std::string{};
}

// Returns true for [a-z][a-z0-9_]* of at most 64 characters, which fits a table.
bool is_name(std::string_view s) {
  if (s.empty() || s.size() > 64 || s[0] < 'a' || s[0] > 'z') return false;
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

// Copies a struct that starts with struct_size: as many bytes as both sides know, the rest zero. Throws for a size that
// cannot be right.
template <class T> T versioned(const void* theirs, const std::string& what) {
  std::uint32_t size = 0;
  std::memcpy(&size, theirs, sizeof size);
  if (size < 2 * sizeof size || size > 1 << 16)
    refuse("{}: struct_size is {}: set it to sizeof the struct", what, size);
  T ours{};
  std::memcpy(&ours, theirs, std::min<std::size_t>(size, sizeof ours));
  ours.struct_size = sizeof ours;
  return ours;
}

// Requires the functions of a model: of a model plugin, or of the result of an executor's compile().
void require_model(const std::string& what, const rg_model& m) {
  require_functions(
      what, {{"destroy", m.destroy}, {"describe", m.describe}, {"init", m.init}, {"bind", m.bind}, {"step", m.step}});
  if (m.metric) require_functions(what + " has metric, but", {{"evaluate", m.evaluate}});
}

std::vector<rg_param> read_parameters(const rg_component& c, const std::string& what) {
  if (c.param_count > 1000) refuse("{}: param_count is {}, 1000 is the most", what, c.param_count);
  if (c.param_count && !c.params) refuse("{}: {} parameters, but the table is null", what, c.param_count);
  std::vector<rg_param> all;
  std::set<std::string_view> names;
  std::uint32_t stride = 0;
  for (std::uint32_t i = 0; i < c.param_count; ++i) {
    const auto* at = reinterpret_cast<const char*>(c.params) + std::size_t{i} * stride;
    const auto which = fmt::format("{}: parameter {}", what, i + 1);
    std::uint32_t size = 0;
    std::memcpy(&size, at, sizeof size);
    auto p = versioned<rg_param>(at, which);
    if (stride && size != stride)
      refuse("{}: struct_size is {}, the first one's is {}: all elements of a table have the same", which, size,
             stride);
    stride = size;
    if (!p.name || !is_name(p.name))
      refuse("{} is named {}: names are [a-z][a-z0-9_]*", which, p.name ? '"' + one_line(p.name) + '"' : "null");
    const std::string_view name = p.name;
    if (name == "plugin") refuse("{}: no parameter may be named \"plugin\": that chooses the plugin", what);
    if (name == c.id)
      refuse("{}: parameter {} is named like the component: a table of that name holds its parameters", what, name);
    if (!names.insert(name).second) refuse("{}: two parameters are named {}", what, name);
    if (!p.help) p.help = "";
    if (const auto why = contradiction(p); !why.empty()) refuse("{}: parameter {} {}", what, name, one_line(why));
    all.push_back(p);
  }
  return all;
}

void read_graph(const std::string& what, const void* table, component& out) {
  out.graph = versioned<rg_graph_source>(table, what + ", extension " RG_EXT_GRAPH);
  require_functions(what + ", extension " RG_EXT_GRAPH,
                    {{"create", out.graph.create}, {"destroy", out.graph.destroy}, {"graph", out.graph.graph}});
}

// Reads the extensions that the coordinator has to know, although it calls none of them.
void read_extensions(const std::string& what, const rg_component& c, component& out) {
  const auto has = [&](kind k, const char* id) { return out.kind == k && c.extension ? c.extension(id) : nullptr; };
  if (const void* graph = has(kind::model, RG_EXT_GRAPH)) {
    out.is_graph = true;
    read_graph(what, graph, out);
  }
  if (const void* devices = has(kind::executor, RG_EXT_DEVICES)) {
    out.has_devices = true;
    const auto table = versioned<rg_devices>(devices, what + ", extension " RG_EXT_DEVICES);
    require_functions(what + ", extension " RG_EXT_DEVICES,
                      {{"count", table.count}, {"describe", table.describe}, {"topology", table.topology}});
  }
  if (const void* launched = has(kind::transport, RG_EXT_LAUNCHER)) {
    const auto table = versioned<rg_launcher>(launched, what + ", extension " RG_EXT_LAUNCHER);
    require_functions(what + ", extension " RG_EXT_LAUNCHER, {{"join", table.join}});
    if (!table.launcher || !*table.launcher)
      refuse("{}: extension " RG_EXT_LAUNCHER " names no launcher: set it to the command, such as \"mpirun -n\"", what);
    out.launcher = one_line(table.launcher);
  }
}

void read_functions(const std::string& what, const rg_component& c, component& out) {
  if (!c.functions) {
    if (out.is_graph) return;
    refuse("{}: the table of functions is null{}", what,
           out.kind == kind::model ? ", and it is no graph (extension " RG_EXT_GRAPH ")" : "");
  }
  switch (out.kind) {
  case kind::model:
    out.model = versioned<rg_model>(c.functions, what);
    if (!out.is_graph || out.model.create) {
      require_functions(what, {{"create", out.model.create}});
      require_model(what, out.model);
    }
    break;
  case kind::executor:
    out.executor = versioned<rg_executor>(c.functions, what);
    require_functions(what, {{"compile", out.executor.compile}});
    if (!out.executor.memory) refuse("{}: memory is 0: say where it runs models (RG_MEMORY_*)", what);
    if (out.executor.device) out.device = out.executor.device;
    if ((out.executor.memory & RG_MEMORY_DEVICE) != 0 && (!is_name(out.device) || out.device == "cpu"))
      refuse("{}: device is \"{}\": expected the name of a kind of device, such as \"cuda\"", what, out.device);
    if (!out.executor.model) refuse("{}: model, the functions of a compiled model, is null", what);
    out.executor_model = versioned<rg_model>(out.executor.model, what + ", model");
    require_model(what + ", model", out.executor_model);
    break;
  case kind::transport: {
    out.transport = versioned<rg_transport>(c.functions, what);
    const auto& t = out.transport;
    require_functions(what, {{"create", t.create},
                             {"destroy", t.destroy},
                             {"caps", t.caps},
                             {"listen", t.listen},
                             {"connect", t.connect},
                             {"send", t.send},
                             {"recv", t.recv},
                             {"poll", t.poll},
                             {"wake", t.wake},
                             {"cancel", t.cancel},
                             {"close", t.close},
                             {"counters", t.counters}});
    break;
  }
  case kind::strategy: {
    out.strategy = versioned<rg_strategy>(c.functions, what);
    const auto& s = out.strategy;
    require_functions(what, {{"plan", s.plan},
                             {"talks", s.talks},
                             {"create", s.create},
                             {"destroy", s.destroy},
                             {"completed", s.completed}});
    break;
  }
  }
}

// Turns the message of the dynamic loader into one that says what to do.
std::string explain_load_error(const std::string& text, const std::filesystem::path& file) {
  // Boost wraps it: "... (dlerror system message: FILE: TEXT): generic description".
  constexpr std::string_view before = "dlerror system message: ";
  std::string said = text;
  if (auto at = said.find(before); at != std::string::npos) {
    said.erase(0, at + before.size());
    if (auto end = said.rfind(')'); end != std::string::npos) said.erase(end);
  }
  const auto own = file.string() + ": ";
  if (said.starts_with(own)) said.erase(0, own.size());
  constexpr std::string_view undefined = "undefined symbol: ", missing = ": cannot open shared object file";
  if (said.starts_with(undefined))
    return fmt::format(
        "needs {}, which nothing defines: link the library that does, with --no-undefined to be told",
        boost::core::demangle(
            said.substr(undefined.size(), said.find_first_of(" ,(", undefined.size()) - undefined.size()).c_str()));
  if (auto at = said.find(missing); at != std::string::npos)
    return fmt::format("needs {}, which is not found: install it, or build the plugin again", said.substr(0, at));
  return fmt::format("cannot be loaded: {}", one_line(said));
}

boost::dll::shared_library open(const std::filesystem::path& file) {
  boost::dll::shared_library library;
  try {
    namespace mode = boost::dll::load_mode;
    library.load(file, static_cast<mode::type>(mode::rtld_now | mode::rtld_local));
  } catch (const boost::dll::fs::system_error& e) {
    refuse("{}", explain_load_error(e.what(), file));
  } catch (const std::exception& e) {
    refuse("an exception left a static constructor: {}", one_line(e.what()));
  } catch (...) {
    refuse("an exception left a static constructor");
  }
  return library;
}

// The host that plugins get while they are loaded. The interface promises that it lives as long as the process.
plugin_host& loading_host() {
  static auto& host = *new plugin_host([](int level, const std::string& text) {
    if (level <= RG_LOG_WARNING) print_error(text + "\n");
  });
  return host;
}

// Never unloads a library, not even at exit: threads and objects of a plugin may live as long as the process.
boost::dll::shared_library& keep(boost::dll::shared_library library) {
  static auto& all = *new std::deque<boost::dll::shared_library>;
  return all.emplace_back(std::move(library));
}

const rg_plugin* call_entry(const boost::dll::shared_library& library) {
  if (!library.has(RG_ENTRY_SYMBOL))
    refuse("exports no " RG_ENTRY_SYMBOL ": it is no Regatta plugin (or its RG_PLUGIN line is missing)");
  auto& host = loading_host();
  const rg_plugin* description = nullptr;
  try {
    description = library.get<const rg_plugin*(const rg_host*)>(RG_ENTRY_SYMBOL)(host.c());
  } catch (const std::exception& e) {
    refuse("its " RG_ENTRY_SYMBOL " threw: {}", one_line(e.what()));
  } catch (...) {
    refuse("its " RG_ENTRY_SYMBOL " threw something that is no std::exception");
  }
  const auto text = host.take_error();
  if (!description)
    refuse("its " RG_ENTRY_SYMBOL " returned no description (null){}{}", text.empty() ? "" : ": ", text);
  return description;
}

} // namespace

loaded_plugin read_description(const rg_plugin* description, const std::filesystem::path& file) {
  if (description->abi_major != RG_ABI_MAJOR)
    refuse("is built for version {} of the plugin interface, this regatta speaks version {}: build it against this "
           "regatta's SDK",
           description->abi_major, RG_ABI_MAJOR);
  const auto plugin = versioned<rg_plugin>(description, "description");
  const bool newer = plugin.abi_minor > RG_ABI_MINOR;
  if (!plugin.component_count || !plugin.components) refuse("holds no component");
  if (plugin.component_count > 1000) refuse("component_count is {}, 1000 is the most", plugin.component_count);

  loaded_plugin out;
  std::set<std::pair<std::uint32_t, std::string>> seen;
  for (std::uint32_t i = 0; i < plugin.component_count; ++i) {
    if (!plugin.components[i]) refuse("component {} of {} is null", i + 1, plugin.component_count);
    const auto theirs = versioned<rg_component>(plugin.components[i], fmt::format("component {}", i + 1));
    if (!theirs.id || !is_name(theirs.id))
      refuse("component {} has the id {}: ids are [a-z][a-z0-9_]*", i + 1,
             theirs.id ? '"' + one_line(theirs.id) + '"' : "null");
    if (theirs.kind < RG_KIND_MODEL || theirs.kind > RG_KIND_STRATEGY) {
      if (!newer) refuse("\"{}\" is of kind {}, which does not exist", theirs.id, theirs.kind);
      out.unknown.push_back(fmt::format("\"{}\" is of a kind that this regatta does not know ({}, of version {}.{} of "
                                        "the plugin interface): update regatta to use it",
                                        theirs.id, theirs.kind, plugin.abi_major, plugin.abi_minor));
      continue;
    }
    component c{};
    c.kind = static_cast<enum kind>(theirs.kind);
    const auto what = fmt::format("{} {}", name_of(c.kind), theirs.id);
    if (!seen.emplace(theirs.kind, theirs.id).second) refuse("holds two components {}", what);
    c.id = theirs.id;
    c.summary = or_empty(theirs.summary);
    c.plugin_name = or_empty(plugin.name);
    c.plugin_version = or_empty(plugin.version);
    c.file = file;
    c.extension = theirs.extension;
    c.parameters = read_parameters(theirs, what);
    read_extensions(what, theirs, c);
    read_functions(what, theirs, c);
    c.evaluates = c.is_graph || c.model.evaluate;
    out.components.push_back(std::move(c));
  }
  return out;
}

loaded_plugin load_plugin(const std::filesystem::path& file) {
  return read_description(call_entry(keep(open(file))), file);
}

nlohmann::json try_plugin(const std::filesystem::path& file, const std::function<void(const char*)>& stage) {
  stage("was being loaded");
  auto& library = keep(open(file));
  stage("ran " RG_ENTRY_SYMBOL);
  const auto* description = call_entry(library);
  stage("had its description read");
  auto copy = to_json(read_description(description, file));
  // In a rank nothing is ever unloaded. Here unload() runs the destructors that would run at the end of the program.
  stage("ran its destructors");
  library.unload();
  return copy;
}

} // namespace regatta
