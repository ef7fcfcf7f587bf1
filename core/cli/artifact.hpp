// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct artifact_options {
  std::string result, out;          // result.json or its folder; the file that is written
  std::vector<std::string> sources; // folders and files of the plugins' sources; empty: found beside the plugins
};

// Runs `regatta artifact`: writes the file, and prints what is in it. Returns 0. Throws failure (usage) if the result
// cannot be packed or `out` does not end in .tar.gz or .tgz, failure (run) if the file cannot be written. [main]
int artifact_verb(const artifact_options& o);

struct reproduce_options {
  std::string file, out; // `out`: a folder that is missing or empty; empty: results/reproduce-NAME-TIME
  std::vector<std::string> set, plugin_path;
  bool trust_binaries = false, dry_run = false;
  std::string progress = "auto"; // auto, always, never or json
  std::string command;           // as typed
};

// Runs `regatta reproduce`: says what will be built and loaded, unpacks the artifact, builds, runs the experiment, and
// prints both results. Nothing of the artifact is executed but plugins that were built from its sources, its binaries
// if `trust_binaries`, and the build files of its sources. Returns the exit code: 0 if all claims hold, gate (5) if one
// fails, skipped (77) if none fails and one is undecided, or if the artifact makes no claims; but that of the run if it
// is worse (worse_exit_code()), and skipped if this machine cannot run it. With `dry_run`: 0 or skipped. Throws
// failure: usage if the file is no artifact or is not safe to run, if `out` is not empty, or for a wrong `set`; skipped
// if plugins cannot be built. [main]
int reproduce_verb(const reproduce_options& o);

} // namespace regatta
