// SPDX-License-Identifier: Apache-2.0
#include "folder.hpp"

#include "base/failure.hpp"
#include "registry/elf.hpp"
#include "registry/registry.hpp"
#include "registry/validate.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

#include <cstdint>
#include <cstring>
#include <random>

#include <elf.h>
#include <sys/stat.h>

using namespace regatta;

namespace {

// The registry's one-line error for a folder with the sound plugin and this file. Checks that the sound one is loaded.
std::string reason_for(const folder& f, const std::filesystem::path& file) {
  if (!std::filesystem::exists(f.path / "good.so")) f.add("good");
  const registry r({f.path});
  REQUIRE(r.failures().size() == 1);
  CHECK(r.failures()[0].file == file);
  CHECK(r.failures()[0].reason.find('\n') == std::string::npos);
  CHECK(r.find(kind::transport, "good").parameters.size() == 9);
  // Loading the file by name gives the same error.
  try {
    r.find(kind::transport, file.stem().string());
    FAIL("found");
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::plugin);
    CHECK(std::string(e.what()).find(r.failures()[0].reason) != std::string::npos);
  }
  return r.failures()[0].reason;
}

std::string reason_for_plugin(const std::string& name) {
  const folder f;
  return reason_for(f, f.add(name));
}

std::string reason_for_bytes(std::string_view bytes) {
  const folder f;
  return reason_for(f, f.write("bytes.so", bytes));
}

bool has(const std::string& text, std::string_view part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

} // namespace

TEST_CASE("a sound C99 plugin") {
  const folder f;
  f.add("good");
  const registry r({f.path});
  CHECK(r.failures().empty());
  const auto& c = r.find(kind::transport, "good");
  CHECK(c.summary == "a transport in C99");
  CHECK(c.plugin_name == "good");
  CHECK(c.file == f.path / "good.so");
  CHECK((c.transport.poll == nullptr)); // it is described, nothing is loaded
  CHECK_FALSE(c.is_graph);
  const registry loading = r.loading();
  const auto& l = loading.find(kind::transport, "good");
  CHECK((l.transport.poll != nullptr));
  CHECK((l.transport.now == nullptr));
  CHECK((l.graph.create == nullptr));
  void* self = nullptr;
  CHECK(l.transport.create(nullptr, parameter_values(l, {}).data(), &self) == RG_OK);
}

TEST_CASE("smaller structs: members that they lack are null, bytes behind them are not read") {
  const folder f;
  f.add("older");
  const registry r = registry({f.path}).loading();
  REQUIRE(r.failures().empty());
  const auto& c = r.find(kind::transport, "older");
  CHECK(c.transport.struct_size == sizeof(rg_transport));
  CHECK((c.transport.counters != nullptr));
  CHECK((c.transport.now == nullptr));
  CHECK((c.transport.extension == nullptr));
  CHECK((c.extension == nullptr));
  REQUIRE(c.parameters.size() == 2);
  CHECK(std::string(c.parameters[1].name) == "second");
  CHECK(c.parameters[1].choices == nullptr);
  CHECK(parameter_values(c, {}).data()[1].i == 2);
}

TEST_CASE("larger structs: added members are left out; a kind of the future is reported and does not hurt the rest") {
  const folder f;
  f.add("newer");
  const registry r = registry({f.path}).loading();
  const auto& c = r.find(kind::transport, "newer");
  CHECK(c.transport.struct_size == sizeof(rg_transport));
  REQUIRE(c.parameters.size() == 2);
  CHECK(std::string(c.parameters[1].name) == "second");
  REQUIRE(r.failures().size() == 1);
  CHECK(r.failures()[0].reason ==
        "\"unheard_of\" is of a kind that this regatta does not know (77, of version 1.2 of the "
        "plugin interface): update regatta to use it");
}

TEST_CASE("files that are no plugin for this machine") {
  const auto good = bytes_of("good");
  CHECK(reason_for_bytes("") == "empty: build or copy it again");
  CHECK(has(reason_for_bytes("#!/bin/sh\n"), "not a shared object"));
  CHECK(has(reason_for_bytes("\x7f"
                             "ELF"),
            "truncated"));
  for (const std::size_t kept :
       {std::size_t{20}, std::size_t{64}, std::size_t{500}, good.size() / 2, good.size() - 1}) {
    CAPTURE(kept);
    CHECK(has(reason_for_bytes(std::string_view(good).substr(0, kept)), "truncated"));
  }
  auto with = [&](std::size_t offset, std::uint16_t value, std::size_t bytes = 2) {
    auto changed = good;
    std::memcpy(changed.data() + offset, &value, bytes);
    return changed;
  };
  const auto machine = offsetof(Elf64_Ehdr, e_machine);
  Elf64_Ehdr own;
  std::memcpy(&own, good.data(), sizeof own);
  const auto other = own.e_machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  CHECK(has(reason_for_bytes(with(machine, other)), other == EM_AARCH64 ? "built for AArch64" : "built for x86-64"));
  CHECK(has(reason_for_bytes(with(EI_CLASS, ELFCLASS32, 1)), "built for"));
  CHECK(has(reason_for_bytes(with(EI_DATA, ELFDATA2MSB, 1)), "another architecture"));
  CHECK(has(reason_for_bytes(with(offsetof(Elf64_Ehdr, e_type), ET_REL)), "not a shared object"));
}

TEST_CASE("names in the folder that are no files") {
  SUBCASE("a link to nothing") {
    const folder f;
    std::filesystem::create_symlink("nowhere.so", f.path / "link.so");
    CHECK(has(reason_for(f, f.path / "link.so"), "a link to a file that does not exist"));
  }
  SUBCASE("a folder") {
    const folder f;
    std::filesystem::create_directory(f.path / "folder.so");
    CHECK(has(reason_for(f, f.path / "folder.so"), "not a regular file"));
  }
  SUBCASE("a pipe, which must not be waited for") {
    const folder f;
    REQUIRE(::mkfifo((f.path / "pipe.so").c_str(), 0600) == 0);
    CHECK(has(reason_for(f, f.path / "pipe.so"), "not a regular file"));
  }
  SUBCASE("a link to itself") {
    const folder f;
    std::filesystem::create_symlink("loop.so", f.path / "loop.so");
    CHECK(has(elf_problem(f.path / "loop.so"), "cannot be read (Too many levels of symbolic links)"));
  }
}

TEST_CASE("headers of noise never crash") {
  const auto good = bytes_of("good");
  std::mt19937 random(1);
  const folder f;
  for (int round = 0; round < 300; ++round) {
    auto changed = good;
    for (int i = 0; i < 4; ++i) changed[random() % 400] = static_cast<char>(random());
    const auto file = f.write("noise.so", changed);
    CHECK(elf_problem(file).find('\n') == std::string::npos);
  }
}

TEST_CASE("plugins that break while they are loaded") {
  // Sanitizers end a process in their own way.
  CHECK(has(reason_for_plugin("crash_in_constructor"), "while it was being loaded"));
  CHECK(has(reason_for_plugin("abort_in_constructor"), "was killed by SIGABRT while it was being loaded"));
  CHECK(has(reason_for_plugin("exit_in_constructor"), "ended the process while it was being loaded"));
  CHECK(has(reason_for_plugin("exit_in_entry"), "ended the process while it ran regatta_plugin"));
  CHECK(has(reason_for_plugin("crash_in_destructor"), "while it ran its destructors"));
  CHECK(has(reason_for_plugin("throw_in_constructor"), "no licence was found"));
  CHECK(reason_for_plugin("throw_in_entry") == "its regatta_plugin threw: entry gave up");
  CHECK(has(reason_for_plugin("wild_pointer"), "while it had its description read"));
  CHECK(has(reason_for_plugin("undefined_symbol"), "needs nobody_defines_this, which nothing defines"));
  CHECK(has(reason_for_plugin("no_entry"), "exports no regatta_plugin"));
  CHECK(reason_for_plugin("null_description") == "its regatta_plugin returned no description (null)");
  CHECK(reason_for_plugin("null_description_with_text") ==
        "its regatta_plugin returned no description (null): no such device");
}

TEST_CASE("descriptions that cannot be") {
  const std::pair<const char*, const char*> all[] = {
      {"wrong_major", "is built for version 2 of the plugin interface, this regatta speaks version 1"},
      {"plugin_without_size", "description: struct_size is 0: set it to sizeof the struct"},
      {"component_size_absurd", "component 1: struct_size is 2147483647"},
      {"functions_without_size", "transport bad: struct_size is 0"},
      {"no_component", "holds no component"},
      {"null_component", "component 2 of 2 is null"},
      {"null_id", "component 1 has the id null"},
      {"odd_id", "component 1 has the id \"Bad id\""},
      {"unknown_kind", "\"bad\" is of kind 42, which does not exist"},
      {"two_of_one_id", "holds two components transport bad"},
      {"null_functions", "transport bad: the table of functions is null"},
      {"null_slot", "transport bad: the function poll is missing (null)"},
      {"slot_beyond_size", "transport bad: the function counters is missing (null)"},
      {"strategy_null_slot", "strategy bad: the function plan is missing (null)"},
      {"model_null_slot", "model bad: the function create is missing (null)"},
      {"model_without_anything", "model bad: the table of functions is null, and it is no graph"},
      {"graph_null_slot", "model bad, extension regatta.graph/1: the function destroy is missing (null)"},
      {"executor_without_model", "executor bad: model, the functions of a compiled model, is null"},
  };
  for (const auto& [plugin, reason] : all) {
    CAPTURE(plugin);
    has(reason_for_plugin(plugin), reason);
  }
}

TEST_CASE("parameter tables that contradict themselves") {
  const std::pair<const char*, const char*> all[] = {
      {"parameter_table_null", "2 parameters, but the table is null"},
      {"parameter_count_absurd", "param_count is 4000000000, 1000 is the most"},
      {"parameters_of_two_sizes", "parameter 2: struct_size is"},
      {"parameter_without_name", "parameter 2 is named null"},
      {"parameter_named_oddly", "parameter 2 is named \"Two words\""},
      {"parameter_named_plugin", "no parameter may be named \"plugin\""},
      {"parameter_named_like_id", "parameter bad is named like the component"},
      {"parameter_named_like_other", "its parameter good is named like transport good"},
      {"duplicate_parameter", "two parameters are named depth"},
      {"unknown_type", "parameter x is of unknown type 42"},
      {"unknown_unit", "parameter x has the unknown unit 42"},
      {"unit_of_string", "parameter x has a unit that goes with integers only, but is string"},
      {"bounds_of_string", "parameter x has bounds, but is string"},
      {"min_above_max", "parameter x has min 2 above max 1"},
      {"choices_of_numbers", "parameter x has choices, which only strings may have, but is integer"},
      {"choice_twice", "parameter x has the choice \"a\" twice"},
      {"no_choice", "parameter x has an empty list of choices"},
      {"default_malformed", "parameter x has the malformed default unquoted"},
      {"default_of_wrong_type", "parameter x has the default 0.5, but must be an integer"},
      {"default_out_of_range", "parameter x has the default 11, but must be an integer from 1 to 10"},
      {"default_out_of_range_in_list",
       "parameter x has the default [1, 11], but must be a list of integers from 1 to 10"},
      {"default_not_among_choices", "parameter x has the default \"c\", but must be one of \"a\", \"b\""},
  };
  for (const auto& [plugin, reason] : all) {
    CAPTURE(plugin);
    // A clash of two plugins is the error of the one that is loaded later.
    const folder f;
    has(reason_for(f, f.add(plugin, "x_bad")), reason);
  }
}

TEST_CASE("two plugins of one folder with one id are both refused") {
  const folder f;
  f.add("good", "a");
  f.add("good", "b");
  f.add("older");
  const registry r({f.path});
  REQUIRE(r.failures().size() == 2);
  CHECK(r.failures()[0].reason == "holds transport good, as b.so does: remove one of the two, or give it another id");
  CHECK(r.failures()[1].reason == "holds transport good, as a.so does: remove one of the two, or give it another id");
  CHECK(r.components().size() == 1);
  CHECK_THROWS_WITH_AS(r.find(kind::transport, "good"), doctest::Contains("as b.so does"), failure);
}

TEST_CASE("of two folders the first counts; the same file twice is one") {
  const folder first, second;
  first.add("good");
  second.add("good", "again");
  second.add("older");
  const registry r({first.path, second.path, first.path / "."});
  CHECK(r.failures().empty());
  CHECK(r.components().size() == 2);
  CHECK(r.find(kind::transport, "good").file == first.path / "good.so");
  REQUIRE(r.hidden().size() == 1);
  CHECK(r.hidden()[0].file == second.path / "again.so");
  CHECK(r.hidden()[0].by == first.path / "good.so");
}

TEST_CASE("files one by one, as a rank loads them") {
  const folder f;
  const auto good = f.add("good"), broken = f.write("broken.so", "no ELF");
  f.add("older"); // not asked for
  for (const auto t : {trust::tried, trust::untried}) {
    const auto r = registry::of_files({good, broken, f.path / "missing.so"}, t);
    CHECK(r.components().size() == 1);
    REQUIRE(r.failures().size() == 2);
    CHECK(has(r.failures()[1].reason, "no such file"));
  }
  const auto crash = registry::of_files({f.add("crash_in_constructor")}, trust::untried);
  CHECK(crash.failures().size() == 1);
}

TEST_CASE("a file among the folders counts before those behind it") {
  const folder a, b;
  const std::filesystem::path first = a.add("good");
  b.add("good");
  b.add("older");
  const registry r({first, b.path});
  CHECK(r.described(kind::transport, "good").file == first);
  CHECK(r.described(kind::transport, "older").file == b.path / "older.so");
  REQUIRE(r.hidden().size() == 1);
  CHECK(r.hidden()[0].by == first);
}

TEST_CASE("an unknown component is reported with a near name and the components that are there") {
  const folder f;
  f.add("good");
  f.add("older");
  f.write("broken.so", "no ELF");
  const registry r({f.path});
  CHECK_THROWS_WITH(
      r.find(kind::transport, "godo"),
      ("there is no transport \"godo\", did you mean \"good\"? (there is good, older); not usable: " +
       (f.path / "broken.so").string() +
       ": not a shared object (no ELF file): remove it from the plugin folder; name the file or folder of "
       "another one with --plugin-path or experiment.plugin_path")
          .c_str());
  CHECK_THROWS_WITH_AS(r.find(kind::model, "x"), doctest::Contains("no models were found"), failure);
}

TEST_CASE("SHA-256 of a file") {
  const folder f;
  CHECK(sha256_of(f.write("abc", "abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of(f.write("none", "")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_THROWS_AS(sha256_of(f.path / "missing"), failure);
}

TEST_CASE("names of kinds") {
  CHECK(name_of(kind::strategy) == "strategy");
  CHECK(kind_of("strategies") == kind::strategy);
  CHECK(kind_of("model") == kind::model);
  CHECK_FALSE(kind_of("modell"));
}

TEST_CASE("a plan that is lossy without being synchronous is refused") {
  auto plan = rg::make_versioned<rg_plan>();
  plan.lanes = 1;
  plan.flags = RG_PLAN_LOSSY | RG_PLAN_SYNCHRONOUS;
  CHECK_NOTHROW(regatta::validate(plan, true, "strategy x"));
  plan.flags = RG_PLAN_LOSSY;
  CHECK_THROWS_WITH(regatta::validate(plan, true, "strategy x"),
                    doctest::Contains("RG_PLAN_LOSSY without RG_PLAN_SYNCHRONOUS"));
}
