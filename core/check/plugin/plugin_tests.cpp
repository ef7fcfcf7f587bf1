// SPDX-License-Identifier: Apache-2.0
//
// Tests of a shared object: it exports one symbol, leaves nothing behind when it is unloaded, and has a correct
// parameter table.
#include "check/harness/progress.hpp"
#include "check/harness/resource_snapshot.hpp"
#include "check/harness/suite.hpp"
#include "check/model/model_under_test.hpp"

#include "base/text.hpp"
#include "check/plugin/sample_cluster.hpp"
#include "registry/inspect.hpp"
#include "registry/parameters.hpp"
#include "registry/transport_host.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

namespace regatta::conformance {
namespace {

// Returns the symbols that the file exports. Reads the file, and runs no code of it.
std::vector<std::string> exported_symbols(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto at = [&]<class T>(std::uint64_t offset, T& out) {
    require(offset <= bytes.size() && sizeof out <= bytes.size() - offset,
            "the file is truncated: its ELF headers point behind its end");
    std::memcpy(&out, bytes.data() + offset, sizeof out);
  };
  const auto text = [&](std::uint64_t offset) {
    require(offset < bytes.size(), "the file is truncated: its symbol names lie behind its end");
    return std::string(bytes.data() + offset, strnlen(bytes.data() + offset, bytes.size() - offset));
  };
  Elf64_Ehdr head;
  at(0, head);
  require(head.e_ident[EI_CLASS] == ELFCLASS64, "it is not a 64-bit ELF file");
  if (!head.e_shnum) throw skipped("its section headers were stripped");
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section, strings;
    at(head.e_shoff + i * sizeof section, section);
    if (section.sh_type != SHT_DYNSYM) continue;
    at(head.e_shoff + section.sh_link * sizeof strings, strings);
    for (std::uint64_t k = 1; k < section.sh_size / sizeof(Elf64_Sym); ++k) {
      Elf64_Sym symbol;
      at(section.sh_offset + k * sizeof symbol, symbol);
      if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL)
        names.push_back(text(strings.sh_offset + symbol.st_name));
    }
  }
  return names;
}

void symbols(const subject& s) {
  auto names = exported_symbols(s.file);
  std::erase(names, RG_ENTRY_SYMBOL);
  if (names.empty()) return;
  const std::size_t count = names.size();
  names.resize(std::min<std::size_t>(count, 3));
  throw failed(fmt::format("it exports {} symbols besides " RG_ENTRY_SYMBOL
                           ": {}{}; build it with regatta_add_plugin, or with hidden visibility and a version script",
                           count, join(names), count > 3 ? ", ..." : ""));
}

bool has_defaults(const component& c) {
  return std::all_of(c.parameters.begin(), c.parameters.end(), [](const rg_param& p) { return p.default_value; });
}

// Creates and destroys an instance, if the component needs neither a cluster nor a graph from elsewhere. Returns the
// status.
rg_status create_and_destroy(const component& c, const parameter_values& values, plugin_host& host) {
  void* self = nullptr;
  rg_status status = RG_OK;
  if (c.kind == kind::transport) {
    status = c.transport.create(host.c(), values.data(), &self);
    if (self) c.transport.destroy(self);
  } else if (c.kind == kind::model && c.graph.create) {
    status = c.graph.create(host.c(), values.data(), &self);
    if (self) c.graph.destroy(self);
  } else if (c.kind == kind::model) {
    const rg_model_setup setup = setup_of(2, RG_PURPOSE_INIT, RG_F32);
    status = c.model.create(host.c(), values.data(), &setup, &self);
    if (self) c.model.destroy(self);
  } else if (c.kind == kind::strategy) {
    const rg_cluster cluster = sample_cluster();
    auto plan = rg::make_versioned<rg_plan>();
    status = c.strategy.plan(host.c(), values.data(), &cluster, &plan);
  }
  report_progress();
  return status;
}

// Loads the file, reads its description, creates an instance of each component if `make_instances`, and unloads the
// file.
void load_and_unload(const std::filesystem::path& file, bool make_instances) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw failed(dlerror());
  {
    static plugin_host loading; // must live as long as the process, as the interface promises
    const auto entry = reinterpret_cast<rg_entry>(dlsym(library, RG_ENTRY_SYMBOL));
    const loaded_plugin plugin = read_description(entry(loading.c()), file);
    for (const component& c : plugin.components) {
      if (!make_instances || !has_defaults(c)) continue;
      plugin_host host;
      create_and_destroy(c, parameter_values(c, {}), host);
    }
  }
  dlclose(library);
}

void unload(const subject& s) {
  // Each round runs in a thread, so that its thread-local data is freed afterwards. The first one creates resources
  // that other libraries keep for the whole process (a thread pool, locales).
  std::async(std::launch::async, load_and_unload, s.file, true).get();
  const resource_snapshot before = resource_snapshot::take();
  for (int i = 0; i < 3; ++i) std::async(std::launch::async, load_and_unload, s.file, i > 0).get();
  if (void* still = dlopen(s.file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    dlclose(still);
    throw failed("it stays loaded after dlclose(); possible causes: a unique symbol (build it with "
                 "regatta_add_plugin), a running "
                 "thread, or -z nodelete");
  }
  before.expect_no_leaks();
}

void parameters(const subject& s) {
  const component& c = *s.tested;
  for (const rg_param& p : c.parameters) {
    require(p.help && *p.help && !std::strchr(p.help, '\n'),
            fmt::format("parameter {} has no help text of one line", p.name));
    if (!p.default_value && !s.parameters.contains(p.name))
      throw skipped(fmt::format("parameter {} has no default; give --set {}=...", p.name, p.name));
  }
  const auto try_with = [&](const std::string& name, const nlohmann::json& value) {
    auto all = s.parameters;
    if (!name.empty()) all[name] = value;
    transport_host host(*s.plugins); // for transports that nest others; other components ask for nothing
    const rg_status status = create_and_destroy(c, parameter_values(c, all), host);
    const std::string text = host.take_error();
    const std::string with = name.empty() ? "its defaults" : fmt::format("{} = {}", name, value.dump());
    require(status >= 0 || !text.empty(),
            fmt::format("it rejects {} (status {}) without a text; call rg_host.fail() first", with, status));
    require(status >= 0 || status == RG_E_CONFIG || status == RG_E_UNSUPPORTED,
            fmt::format("{} gives status {}, \"{}\"; expected RG_OK, or RG_E_CONFIG for a value that it rejects", with,
                        status, text));
    return status;
  };
  const rg_status plain = try_with("", {});
  require(plain >= 0 || plain == RG_E_UNSUPPORTED || !s.parameters.empty(), "it rejects its default parameters");
  // Try every choice, true, false and each minimum. A maximum may be more than this machine has.
  for (const rg_param& p : c.parameters) {
    for (auto choice = p.choices; choice && *choice; ++choice) try_with(p.name, *choice);
    if (p.type == RG_PARAM_BOOL)
      for (const bool value : {false, true}) try_with(p.name, value);
    if (is_bounded(p) && std::isfinite(p.min)) {
      if (p.type == RG_PARAM_INT) try_with(p.name, static_cast<std::int64_t>(p.min));
      if (p.type == RG_PARAM_FLOAT) try_with(p.name, p.min);
    }
  }
}

} // namespace

std::vector<test> plugin_tests() {
  return {
      {"symbols", "the file exports " RG_ENTRY_SYMBOL " and no other symbol", symbols, false, false, true},
      {"unload", "dlclose() unloads it and leaves no thread, descriptor, segment or file", unload, false, false, true},
  };
}

std::vector<test> parameter_tests() {
  return {
      {"parameters", "every value that the table allows is accepted, or rejected with RG_E_CONFIG and a text",
       parameters, false, false, true},
  };
}

} // namespace regatta::conformance
