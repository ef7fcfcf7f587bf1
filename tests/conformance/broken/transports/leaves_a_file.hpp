// SPDX-License-Identifier: Apache-2.0
//
// Defect: each instance leaves a file behind.
#pragma once

#include "../unix.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace {

struct leaves_a_file : unix_transport {
  leaves_a_file(const rg_host* host, const rg::parameters_t<unix_transport>& p) : unix_transport(host, p) {
    std::ofstream(std::filesystem::temp_directory_path() / ("left-by-" + std::to_string(::getpid()))) << "mine\n";
  }
};

} // namespace
