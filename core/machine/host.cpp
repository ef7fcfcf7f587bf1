// SPDX-License-Identifier: Apache-2.0
#include "machine/host.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <regatta/simd.hpp>

#include "base/cpu_mask.hpp"
#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return one_line(line);
}

// Returns the first value of `key` in a file of "key : value" lines.
std::string value_of(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && one_line(line.substr(0, colon)) == key) return one_line(line.substr(colon + 1));
  }
  return "";
}

// Returns for example "AMD EPYC 9755 (AVX-512, AMX)": the extensions decide which kernels can run.
std::string cpu_name() {
  std::string name = value_of("/proc/cpuinfo", "model name");
  std::istringstream flags(value_of("/proc/cpuinfo", "flags"));
  std::set<std::string> has;
  for (std::string flag; flags >> flag;) has.insert(flag);
  std::vector<std::string> extensions;
  if (has.count("avx512f"))
    extensions.push_back("AVX-512");
  else if (has.count("avx2"))
    extensions.push_back("AVX2");
  if (has.count("avx512_bf16")) extensions.push_back("BF16");
  if (has.count("amx_tile")) extensions.push_back("AMX");
  if (!extensions.empty()) name += " (" + join(extensions) + ")";
  return name;
}

// Returns the highest clock rate of the first CPU or, without cpufreq as in virtual machines, the rate that the kernel
// has measured.
json clock_hz() {
  std::istringstream highest(first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")),
      measured(value_of("/proc/cpuinfo", "cpu MHz"));
  double khz = 0, mhz = 0;
  if (highest >> khz) return std::llround(1e3 * khz);
  return measured >> mhz ? json(std::llround(1e6 * mhz)) : json(nullptr);
}

json memory_bytes() {
  std::istringstream total(value_of("/proc/meminfo", "MemTotal"));
  std::uint64_t kib = 0;
  if (!(total >> kib)) return nullptr;
  std::uint64_t bytes = kib * 1024;
  for (const char* limit : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::istringstream text(first_line(limit)); // "max" if there is no limit
    std::uint64_t value = 0;
    if (text >> value) bytes = std::min(bytes, value);
  }
  return bytes;
}

// NVIDIA driver lists its devices in /proc, so no library is needed.
json gpus() {
  std::vector<std::string> models;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored))
    if (std::string model = value_of(entry.path() / "information", "Model"); !model.empty()) models.push_back(model);
  return models;
}

json interfaces() {
  std::map<std::string, json> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/class/net", ignored)) {
    std::istringstream speed(first_line(entry.path() / "speed")), mtu(first_line(entry.path() / "mtu"));
    std::int64_t megabits = -1, bytes = -1;
    speed >> megabits; // unreadable or -1 on loopback and virtual interfaces
    mtu >> bytes;
    const std::string name = entry.path().filename();
    found[name] = {{"name", name},
                   {"bits_per_second", megabits > 0 ? json(megabits * 1'000'000) : json(nullptr)},
                   {"mtu", bytes > 0 ? json(bytes) : json(nullptr)}};
  }
  json list = json::array();
  for (auto& [name, interface] : found) list.push_back(std::move(interface));
  return list;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

} // namespace

void check_isa_variable() {
  using rg::simd::isa_names;
  const char* const text = std::getenv("REGATTA_ISA");
  if (text && std::ranges::find(isa_names, text) == isa_names.end())
    throw failure(
        exit_code::usage,
        fmt::format("REGATTA_ISA in the environment: expected {}, got \"{}\"; unset it to use all that the CPU "
                    "has",
                    fmt::join(isa_names, ", "), one_line(text)));
}

json describe_host(double cgroup_cpus) {
  utsname system{};
  uname(&system);
  const std::size_t cores = available_cpus().size(); // 0: unknown
  return {{"name", text_or_null(system.nodename)},
          {"cpu", text_or_null(cpu_name())},
          {"clock_hz", clock_hz()},
          {"isa", rg::simd::isa_names[static_cast<std::size_t>(rg::simd::choose())]},
          {"cores", cores ? json(cores) : json(nullptr)},
          {"memory_bytes", memory_bytes()},
          {"cgroup_cpus", std::isfinite(cgroup_cpus) ? json(cgroup_cpus) : json(nullptr)},
          {"governor", text_or_null(first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))},
          {"gpus", gpus()},
          {"interfaces", interfaces()},
          {"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"libraries", {{"libc", std::string("glibc ") + gnu_get_libc_version()}, {"compiler", compiler()}}}};
}

} // namespace regatta
