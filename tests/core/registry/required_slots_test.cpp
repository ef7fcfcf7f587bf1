// SPDX-License-Identifier: Apache-2.0
//
// The loader refuses a component whose table lacks a required function, and accepts one that lacks an optional one. The
// tables below name every function slot of abi/ and of the extensions that the loader reads.
#include "base/failure.hpp"
#include "registry/extension_tables.hpp"
#include "registry/inspect.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <regatta/abi.h>
#include <regatta/ext/cancel.h>
#include <regatta/ext/collectives.h>
#include <regatta/ext/counters.h>
#include <regatta/ext/device.h>
#include <regatta/ext/graph.h>
#include <regatta/ext/launcher.h>
#include <regatta/ext/one_sided.h>
#include <regatta/ext/regions.h>
#include <regatta/ext/wait.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

using namespace regatta;

namespace {

struct slot {
  const char* name;
  std::size_t at;
};

#define SLOT(type, name)                                                                                               \
  slot {                                                                                                               \
#name, offsetof(type, name)                                                                                        \
  }

void never_called() {}

// Points every slot of a table to a function that nothing calls: the loader calls none of these.
template <class T> void fill(T& table, const std::vector<slot>& slots) {
  void (*const function)() = &never_called;
  table.struct_size = sizeof table;
  for (const slot& s : slots) std::memcpy(reinterpret_cast<char*>(&table) + s.at, &function, sizeof function);
}

template <class T> void clear(T& table, const slot& s) {
  std::memset(reinterpret_cast<char*>(&table) + s.at, 0, sizeof(void*));
}

std::vector<slot> both(std::vector<slot> a, const std::vector<slot>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Returns the loader's error for a plugin that consists of this component; empty: it was accepted.
std::string error_of(std::uint32_t kind, const void* functions, const void* (*extension)(const char*) = nullptr) {
  rg_component c{};
  c.struct_size = sizeof c;
  c.kind = kind;
  c.id = "mine";
  c.summary = "";
  c.functions = functions;
  c.extension = extension;
  const rg_component* const components[] = {&c};
  rg_plugin plugin{};
  plugin.struct_size = sizeof plugin;
  plugin.abi_major = RG_ABI_MAJOR;
  plugin.abi_minor = RG_ABI_MINOR;
  plugin.name = plugin.version = "";
  plugin.components = components;
  plugin.component_count = 1;
  try {
    read_description(&plugin, "mine.so");
    return {};
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::plugin);
    return e.what();
  }
}

// Nulls each slot of `table` in turn. `try_it` returns the loader's error for the table as it is.
template <class T, class F>
void null_each(const std::string& what, T& table, const std::vector<slot>& required, const std::vector<slot>& optional,
               F try_it) {
  CHECK(try_it() == "");
  const T sound = table;
  for (const slot& s : required) {
    clear(table, s);
    CHECK(try_it() ==
          fmt::format("{}: the function {} is missing (null), which every component of this kind needs", what, s.name));
    table = sound;
  }
  for (const slot& s : optional) {
    CAPTURE(s.name);
    clear(table, s);
    CHECK(try_it() == "");
    table = sound;
  }
}

const std::vector<slot> model_required{SLOT(rg_model, destroy), SLOT(rg_model, describe), SLOT(rg_model, init),
                                       SLOT(rg_model, bind), SLOT(rg_model, step)};
// evaluate is optional, but metric requires it.
const std::vector<slot> model_optional{SLOT(rg_model, metric),         SLOT(rg_model, canonical),
                                       SLOT(rg_model, from_canonical), SLOT(rg_model, kernels),
                                       SLOT(rg_model, rows),           SLOT(rg_model, count)};
const slot evaluate = SLOT(rg_model, evaluate), model_create = SLOT(rg_model, create);

rg_graph_source graph{};
rg_launcher launcher{};
rg_devices devices{};

// A transport's instance that offers one extension.
const char* offered = nullptr;
const void* offered_table = nullptr;
const void* offer(void*, const char* id) {
  return std::strcmp(id, offered) == 0 ? offered_table : nullptr;
}

// Returns the engine's error for an instance of a transport with this table; empty: it was accepted.
std::string error_of_instance() {
  rg_transport t{};
  t.struct_size = sizeof t;
  t.extension = &offer;
  try {
    checked_extensions(t, nullptr, "transport mine");
    return {};
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::plugin);
    return e.what();
  }
}

template <class T>
void null_each_of(const char* id, const std::vector<slot>& required, const std::vector<slot>& optional = {}) {
  static T table{};
  fill(table, both(required, optional));
  offered = id;
  offered_table = &table;
  null_each(std::string("transport mine, extension ") + id, table, required, optional, &error_of_instance);
}

} // namespace

TEST_CASE("a transport") {
  const std::vector<slot> required{
      SLOT(rg_transport, create), SLOT(rg_transport, destroy), SLOT(rg_transport, caps),
      SLOT(rg_transport, listen), SLOT(rg_transport, connect), SLOT(rg_transport, send),
      SLOT(rg_transport, recv),   SLOT(rg_transport, poll),    SLOT(rg_transport, wake),
      SLOT(rg_transport, cancel), SLOT(rg_transport, close),   SLOT(rg_transport, counters)};
  const std::vector<slot> optional{SLOT(rg_transport, now), SLOT(rg_transport, extension)};
  rg_transport t{};
  fill(t, both(required, optional));
  CHECK(offsetof(rg_transport, create) + (required.size() + optional.size()) * sizeof(void*) == sizeof t); // all slots
  null_each("transport mine", t, required, optional, [&] { return error_of(RG_KIND_TRANSPORT, &t); });
}

TEST_CASE("a strategy") {
  const std::vector<slot> required{SLOT(rg_strategy, plan), SLOT(rg_strategy, talks), SLOT(rg_strategy, create),
                                   SLOT(rg_strategy, destroy), SLOT(rg_strategy, completed)};
  const std::vector<slot> optional{
      SLOT(rg_strategy, begin_step), SLOT(rg_strategy, end_step),    SLOT(rg_strategy, serve),
      SLOT(rg_strategy, finish),     SLOT(rg_strategy, on_gradient), SLOT(rg_strategy, pull_rows),
      SLOT(rg_strategy, save),       SLOT(rg_strategy, load),        SLOT(rg_strategy, left)};
  rg_strategy s{};
  fill(s, both(required, optional));
  CHECK(offsetof(rg_strategy, plan) + (required.size() + optional.size()) * sizeof(void*) == sizeof s);
  null_each("strategy mine", s, required, optional, [&] { return error_of(RG_KIND_STRATEGY, &s); });
}

TEST_CASE("a model") {
  const auto required = both({model_create}, model_required);
  rg_model m{};
  fill(m, both(required, both(model_optional, {evaluate})));
  CHECK(offsetof(rg_model, create) + (required.size() + model_optional.size() + 1) * sizeof(void*) == sizeof m);
  null_each("model mine", m, required, model_optional, [&] { return error_of(RG_KIND_MODEL, &m); });
  null_each("model mine has metric, but", m, {evaluate}, {}, [&] { return error_of(RG_KIND_MODEL, &m); });
  clear(m, SLOT(rg_model, metric));
  null_each("model mine", m, {}, {evaluate}, [&] { return error_of(RG_KIND_MODEL, &m); });
}

TEST_CASE("an executor, and the models that it compiles") {
  rg_model m{};
  fill(m, both(model_required, both(model_optional, {evaluate})));
  rg_executor e{};
  fill(e, {SLOT(rg_executor, compile)});
  e.memory = RG_MEMORY_HOST;
  e.model = &m;
  const auto error = [&] { return error_of(RG_KIND_EXECUTOR, &e); };
  null_each("executor mine", e, {SLOT(rg_executor, compile)}, {}, error);
  null_each("executor mine, model", m, model_required, model_optional, error);
}

TEST_CASE("a graph") {
  const std::vector<slot> required{SLOT(rg_graph_source, create), SLOT(rg_graph_source, destroy),
                                   SLOT(rg_graph_source, graph)};
  fill(graph, required);
  null_each("model mine, extension " RG_EXT_GRAPH, graph, required, {}, [] {
    return error_of(RG_KIND_MODEL, nullptr, [](const char* id) -> const void* {
      return std::strcmp(id, RG_EXT_GRAPH) == 0 ? &graph : nullptr;
    });
  });
}

TEST_CASE("a transport of a launcher") {
  rg_transport t{};
  fill(t,
       {SLOT(rg_transport, create), SLOT(rg_transport, destroy), SLOT(rg_transport, caps), SLOT(rg_transport, listen),
        SLOT(rg_transport, connect), SLOT(rg_transport, send), SLOT(rg_transport, recv), SLOT(rg_transport, poll),
        SLOT(rg_transport, wake), SLOT(rg_transport, cancel), SLOT(rg_transport, close), SLOT(rg_transport, counters)});
  fill(launcher, {SLOT(rg_launcher, join)});
  launcher.launcher = "mpirun -n";
  null_each("transport mine, extension " RG_EXT_LAUNCHER, launcher, {SLOT(rg_launcher, join)}, {}, [&] {
    return error_of(RG_KIND_TRANSPORT, &t, [](const char* id) -> const void* {
      return std::strcmp(id, RG_EXT_LAUNCHER) == 0 ? &launcher : nullptr;
    });
  });
}

TEST_CASE("an executor that lists devices") {
  rg_model m{};
  fill(m, model_required);
  rg_executor e{};
  fill(e, {SLOT(rg_executor, compile)});
  e.memory = RG_MEMORY_HOST;
  e.model = &m;
  const std::vector<slot> required{SLOT(rg_devices, count), SLOT(rg_devices, describe), SLOT(rg_devices, topology)};
  fill(devices, required);
  null_each("executor mine, extension " RG_EXT_DEVICES, devices, required, {}, [&] {
    return error_of(RG_KIND_EXECUTOR, &e, [](const char* id) -> const void* {
      return std::strcmp(id, RG_EXT_DEVICES) == 0 ? &devices : nullptr;
    });
  });
}

TEST_CASE("extensions of a transport's instance") {
  null_each_of<rg_cancel>(RG_EXT_CANCEL, {SLOT(rg_cancel, cancel)});
  null_each_of<rg_collectives>(
      RG_EXT_COLLECTIVES, {SLOT(rg_collectives, split), SLOT(rg_collectives, offers), SLOT(rg_collectives, begin)});
  null_each_of<rg_own_counters>(RG_EXT_COUNTERS, {SLOT(rg_own_counters, read)});
  null_each_of<rg_one_sided>(RG_EXT_ONE_SIDED,
                             {SLOT(rg_one_sided, expose), SLOT(rg_one_sided, put), SLOT(rg_one_sided, get)});
  null_each_of<rg_regions>(RG_EXT_REGIONS, {SLOT(rg_regions, remove)},
                           {SLOT(rg_regions, allocate), SLOT(rg_regions, add)});
  null_each_of<rg_wait>(RG_EXT_WAIT, {SLOT(rg_wait, arm)});
}
