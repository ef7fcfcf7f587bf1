// SPDX-License-Identifier: Apache-2.0
#include "artifact/artifact.hpp"
#include "artifact/build.hpp"
#include "artifact/portable.hpp"
#include "artifact/reproduction.hpp"
#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/artifact.hpp"
#include "cli/indented_table.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/run.hpp"
#include "cli/standard_output.hpp"
#include "registry/registry.hpp"
#include "report/result_folder.hpp"
#include "report/stored_document.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

artifact artifact_in(const std::string& file) {
  std::error_code error;
  if (fs::file_size(file, error) > most_archived_bytes && !error)
    throw failure(exit_code::usage, fmt::format("{}: larger than {} MiB: expected an artifact of regatta artifact",
                                                one_line(file), most_archived_bytes >> 20));
  const auto bytes = fs::is_directory(file, error) ? std::nullopt : content_of(file);
  if (!bytes)
    throw failure(
        exit_code::usage,
        fmt::format("{}: cannot be read; expected a file of regatta artifact, such as x.tar.gz", one_line(file)));
  try {
    return read_artifact(*bytes);
  } catch (const failure& e) {
    throw failure(exit_code::usage, fmt::format("{}: {}", one_line(file), e.what()));
  }
}

// The steps that build or load the plugins of an artifact.
struct plan {
  std::vector<std::string> lines;    // says so
  std::vector<std::string> build;    // folders of sources
  std::vector<std::string> binaries; // of the artifact, to be loaded
  std::string missing;               // why this machine cannot run it; empty: it can
};

// A binary that is installed here, byte for byte.
bool is_installed(const artifact_plugin& p, const registry& installed) {
  return std::ranges::any_of(installed.components(), [&](const component& c) {
    return name_of(c.kind) == p.kind && c.id == p.id && sha256_of(c.file.string()) == p.sha256;
  });
}

plan plan_of(const artifact& a, const reproduce_options& o) {
  plan p;
  const registry installed(plugin_folders(o.plugin_path, {}));
  const auto is_here = [&](const artifact_plugin& plugin) {
    return std::ranges::any_of(installed.components(),
                               [&](const component& c) { return name_of(c.kind) == plugin.kind && c.id == plugin.id; });
  };
  const auto miss = [&](const std::string& why) { p.missing += (p.missing.empty() ? "" : "\n") + why; };
  bool needs_sources = false;
  for (const artifact_plugin& plugin : a.plugins) {
    const std::string name = plugin.kind + " " + plugin.id;
    if (is_installed(plugin, installed)) {
      p.lines.push_back(name + ": the same binary is installed here");
    } else if (is_here(plugin) && (plugin.built_in || !o.plugin_path.empty())) {
      p.lines.push_back(name + ": another binary than theirs is installed here, and used");
    } else if (plugin.built_in) {
      miss(name + ": comes with Regatta, but is not installed here (see regatta list)");
    } else if (!a.sources.empty()) {
      p.lines.push_back(name + ": built from the sources of the artifact");
      needs_sources = true;
    } else if (!plugin.file.empty() && o.trust_binaries) {
      p.lines.push_back(
          fmt::format("{}: the artifact's {} is loaded, because of --trust-binaries", name, one_line(plugin.file)));
      if (std::ranges::count(p.binaries, plugin.file) == 0) p.binaries.push_back(plugin.file);
    } else if (!plugin.file.empty()) {
      miss(fmt::format("{}: the artifact has a binary ({}) without sources, which is not run: a binary can do whatever "
                       "you can; if you trust its author, add --trust-binaries, or give your own with --plugin-path",
                       name, one_line(plugin.file)));
    } else {
      miss(name + ": the artifact has neither sources nor a binary; give the plugin with --plugin-path");
    }
  }
  if (!needs_sources) return p;
  p.build = a.sources;
  for (const std::string& source : a.sources)
    p.lines.push_back(fmt::format("{}: cmake builds it, which runs commands of its CMakeLists.txt", one_line(source)));
  if (!sdk_prefix()) {
    const fs::path tree = (built_in_folder() / "../..").lexically_normal();
    miss(fmt::format("building plugins needs an installation of Regatta, and this program runs in a build tree: cmake "
                     "--install {} --prefix ~/regatta, then ~/regatta/bin/regatta reproduce",
                     tree.string()));
  }
  return p;
}

// Returns a new or empty folder.
fs::path folder_for(const reproduce_options& o) {
  if (o.out.empty()) {
    std::string name = fs::path(o.file).filename().string();
    name = name.substr(0, name.find('.'));
    const std::time_t now = std::time(nullptr);
    return result_folder::make_new(fs::path("results") /
                                   fmt::format("reproduce-{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now)));
  }
  std::error_code error;
  fs::create_directories(o.out, error);
  if (error || !fs::is_empty(o.out, error) || error)
    throw failure(exit_code::usage, fmt::format("--out {}: expected a new or empty folder{}", one_line(o.out),
                                                error ? ", got: " + error.message() : ""));
  return o.out;
}

int verdict_of(const reproduction& r, int code_of_run) {
  exit_code code = exit_code::done;
  if (r.failed)
    code = exit_code::gate;
  else if (r.undecided || r.claims == 0)
    code = exit_code::skipped;
  return worse_exit_code(static_cast<int>(code), code_of_run);
}

int skipped_if_unable(int code) {
  const bool unable = code == static_cast<int>(exit_code::usage) || code == static_cast<int>(exit_code::plugin);
  return unable ? static_cast<int>(exit_code::skipped) : code;
}

// Decides the claims by the run's result, and prints them. Returns the exit code of the command.
int conclude(const artifact& a, const fs::path& folder, int code_of_run) {
  const int code = skipped_if_unable(code_of_run);
  if (code == static_cast<int>(exit_code::interrupted) || code == static_cast<int>(exit_code::skipped) ||
      !content_of(folder / "result/result.json"))
    return code;
  const reproduction r =
      compare_with(a.result, read_stored((folder / "result").string(), {"regatta.result/1"}).document,
                   terminal_width(fileno(document_stream())));
  print_output(fmt::format("\n{}\n{} of {} claims hold here, {} fail, {} undecided   {}\n", r.text,
                           r.claims - r.failed - r.undecided, r.claims, r.failed, r.undecided, folder.string()));
  return verdict_of(r, code);
}

// Runs the experiment into FOLDER/result, and decides its claims. Returns the exit code of the command; `skipped` if
// this machine cannot run it.
int run_here(const reproduce_options& o, const artifact& a, const plan& p, const fs::path& folder) {
  run_options run;
  run.file = folder / "artifact/experiment.toml";
  run.changes.set = o.set;
  run.plugin_path = o.plugin_path;
  for (const std::string& binary : p.binaries) run.plugin_path.push_back((folder / "artifact" / binary).string());
  fs::path build = fs::absolute(folder) / "build";
  std::error_code error;
  fs::create_directories(build, error);
  for (const std::string& source : p.build)
    for (const fs::path& plugin :
         build_plugin(fs::absolute(folder) / "artifact" / source, build / fs::path(source).filename(), *sdk_prefix()))
      run.plugin_path.push_back(plugin.string());
  run.out = (folder / "result").string();
  run.progress = o.progress;
  run.command = o.command;
  try {
    return run_verb(run, [&](int code) { return conclude(a, folder, code); });
  } catch (const failure& e) {
    // The file was right where it was written. A wrong --set is the user's.
    if (std::string_view(e.what()).starts_with("--set")) throw;
    print_error(fmt::format("{}\n", e.what()));
    return skipped_if_unable(static_cast<int>(e.code()));
  }
}

} // namespace

int reproduce_verb(const reproduce_options& o) {
  const artifact a = artifact_in(o.file);
  if (const auto unsafe = unsafe_in(a.experiment, o.set); !unsafe.empty())
    throw failure(exit_code::usage, fmt::format("{}: not run:\n  {}", one_line(o.file), join(unsafe, "\n  ")));
  const plan p = plan_of(a, o);
  std::string text;
  for (const std::string& line : p.lines) text += line + "\n";
  print_output(text);
  if (!p.missing.empty()) {
    print_error(p.missing + "\n");
    return static_cast<int>(exit_code::skipped);
  }
  if (o.dry_run) return static_cast<int>(exit_code::done);
  const fs::path folder = folder_for(o);
  fs::create_directories(folder / "artifact");
  unpack_archive(a.files, folder / "artifact");
  return run_here(o, a, p, folder);
}

} // namespace regatta
