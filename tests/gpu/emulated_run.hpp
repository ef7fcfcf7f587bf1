// SPDX-License-Identifier: Apache-2.0
//
// Whole runs with train.device = "cuda" on the emulated GPU (emulated/streams.hpp).
#pragma once

#include "program.hpp"

#include <string>
#include <vector>

namespace emulated_run {

using namespace regatta::test;

inline std::string experiment(const std::string& model) {
  return "[model]\n" + model +
         "[data]\nsource = \"random\"\n[train]\nbatch = 12\nkernels = \"fixed\"\nscaling = \"strong\"\n"
         "[optimizer]\nlr = 0.01\n[measure]\nwarmup = 0\nsteps = 8\nrepeats = 1\nbaseline = false\n";
}
inline const std::string mlp = experiment("plugin = \"mlp\"\nhidden = [64, 32]\ndropout = 0.5\n");

struct course {
  std::vector<double> losses;
  json replicas, kernels;
};
inline course train(const std::string& toml, const std::string& options, const std::string& environment = "") {
  const temporary_folder s;
  const json r = results(s, toml, "--plugin-path " REGATTA_EMULATED " " + options, environment).at(0);
  return {r.at("loss").at("curve").get<std::vector<double>>(), r.at("replicas_identical"), r.at("kernels")};
}

inline const std::string alone = "--set strategy.plugin=none --set transport.plugin=null ",
                         gpu = "--set train.device=cuda ";

} // namespace emulated_run
