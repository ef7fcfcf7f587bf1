// SPDX-License-Identifier: Apache-2.0
#include "comm_bench.hpp"

#include "command.hpp"
#include "limits.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::bench {
namespace {

using nlohmann::json;

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;
constexpr int rounds = 3;
constexpr std::uint64_t ping_pong = 8;

// Seconds by size, each measured once a round, and what is made of them.
class samples {
public:
  void add(std::uint64_t bytes, double seconds) { all_[bytes].push_back(seconds); }
  bool has(std::uint64_t bytes) const { return all_.contains(bytes); }
  double median(std::uint64_t bytes) const {
    auto v = all_.at(bytes);
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  }

private:
  std::map<std::uint64_t, std::vector<double>> all_;
};

std::string time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= MiB ? fmt::format("{} MiB", bytes / MiB) : bytes >= KiB ? fmt::format("{} KiB", bytes / KiB) : "8 B";
}

class comparison {
public:
  explicit comparison(const std::filesystem::path& build) : build_(build) {
    mpi_ = std::filesystem::exists(build / "tests/mpi_comm") && output_of("mpirun --version 2>/dev/null").has_value();
    gloo_ = output_of("/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null").has_value();
  }

  void limits() {
    fmt::print("limits, one core: memory copy {:.1f} GB/s;  a[i] += b[i]", memory_copy() * 1e-9);
    for (const std::uint64_t bytes : {64 * KiB, MiB, 16 * MiB, 64 * MiB})
      fmt::print("  {} {}", size_text(bytes), time_text(add_arrays(bytes)));
    fmt::print("\nloopback TCP, one way: {:.1f} GB/s in pieces of 64 KiB, {:.1f} GB/s of 4 MiB\n\n",
               loopback_tcp(64 * KiB) * 1e-9, loopback_tcp(4 * MiB) * 1e-9);
  }

  void all_reduce() {
    const std::vector<std::uint64_t> sizes = {64 * KiB, MiB, 16 * MiB, 64 * MiB};
    samples shm, tcp, mpi_shm, mpi_tcp, gloo;
    for (int i = 0; i < rounds; ++i) {
      ours(shm, "shm", 2, sizes);
      mpi(mpi_shm, "self,vader", 2, sizes);
      ours(tcp, "tcp", 2, sizes);
      mpi(mpi_tcp, "self,tcp --mca btl_tcp_if_include lo", 2, sizes);
      if (gloo_) run_gloo(gloo, 2, sizes);
    }
    fmt::print("all-reduce of fp32, 2 ranks on 2 cores, spinning (median of {} runs in turn)\n", rounds);
    fmt::print("  {:<8} {:>12} {:>12} {:>24} {:>12} {:>12} {:>24} {:>12} {:>20}\n", "size", "shm", "OpenMPI shm",
               "ratio (asked)", "tcp", "OpenMPI tcp", "ratio (asked)", "gloo", "ratio (asked)");
    for (const std::uint64_t bytes : sizes)
      fmt::print("  {:<8} {:>12} {:>12} {:>24} {:>12} {:>12} {:>24} {:>12} {:>20}\n", size_text(bytes),
                 text(shm, bytes), text(mpi_shm, bytes), ratio(mpi_shm, shm, bytes, bytes == 16 * MiB ? 1.8 : 4),
                 text(tcp, bytes), text(mpi_tcp, bytes), ratio(mpi_tcp, tcp, bytes, bytes >= MiB ? 1.5 : 0),
                 text(gloo, bytes), ratio(gloo, tcp, bytes, bytes >= MiB ? 2 : 0));
    fmt::print("\n");
  }

  void crowded() {
    const std::vector<std::uint64_t> sizes = {16 * MiB, 64 * MiB};
    samples shm, tcp, mpi_shm, mpi_tcp;
    for (int i = 0; i < rounds; ++i) {
      ours(shm, "shm", 4, sizes);
      mpi(mpi_shm, "self,vader", 4, sizes);
      ours(tcp, "tcp", 4, sizes);
      mpi(mpi_tcp, "self,tcp --mca btl_tcp_if_include lo", 4, sizes);
    }
    fmt::print("all-reduce of fp32, 4 ranks on 2 cores, no spinning\n");
    for (const std::uint64_t bytes : sizes)
      fmt::print("  {:<8} shm {:>10}   OpenMPI {:>10}   {}      tcp {:>10}   OpenMPI {:>10}   {}\n", size_text(bytes),
                 text(shm, bytes), text(mpi_shm, bytes), ratio(mpi_shm, shm, bytes, 1.5), text(tcp, bytes),
                 text(mpi_tcp, bytes), ratio(mpi_tcp, tcp, bytes, 1.5));
    fmt::print("\n");
  }

  void eight_bytes() {
    samples shm_spin, tcp_spin, shm_block, tcp_block, raw_spin, raw_block, raw_memory, mpi_shm, mpi_tcp;
    for (int i = 0; i < rounds; ++i) {
      ping(shm_spin, "shm", "1s");
      raw_memory.add(ping_pong, ping_pong_memory());
      ping(tcp_spin, "tcp", "1s");
      raw_spin.add(ping_pong, ping_pong_tcp(true));
      ping(shm_block, "shm", "0s");
      ping(tcp_block, "tcp", "0s");
      raw_block.add(ping_pong, ping_pong_tcp(false));
      mpi(mpi_shm, "self,vader", 2, {});
      mpi(mpi_tcp, "self,tcp --mca btl_tcp_if_include lo", 2, {});
    }
    fmt::print("8 bytes, one way of there and back; the ratio is raw / ours (asked: 0.77, which is within 1.3x)\n");
    const auto line = [&](const char* name, const samples& s, const char* raw_name, const samples& raw) {
      fmt::print("  {:<14} {:>10}   {:<24} {:>10}   {}\n", name, text(s, ping_pong), raw_name, text(raw, ping_pong),
                 ratio(raw, s, ping_pong, 0.77));
    };
    line("shm spinning", shm_spin, "raw shared memory", raw_memory);
    line("tcp spinning", tcp_spin, "raw loopback, polling", raw_spin);
    line("shm blocking", shm_block, "raw loopback, blocking", raw_block);
    line("tcp blocking", tcp_block, "raw loopback, blocking", raw_block);
    fmt::print("  OpenMPI (spins): shm {}, tcp {}\n\n", text(mpi_shm, ping_pong), text(mpi_tcp, ping_pong));
  }

  void push_pull() {
    const std::vector<std::uint64_t> sizes = {MiB, 16 * MiB};
    samples shm, tcp;
    for (int i = 0; i < rounds; ++i)
      for (auto [transport, s] : {std::pair("shm", &shm), std::pair("tcp", &tcp)})
        measure(*s, fmt::format("--transport {} --op push_pull --ranks 2 --spin 1s", transport), sizes);
    fmt::print("push and pull, one worker and one server\n");
    for (const std::uint64_t bytes : sizes)
      fmt::print("  {:<8} shm {:>10}   tcp {:>10}\n", size_text(bytes), text(shm, bytes), text(tcp, bytes));
    fmt::print("  ps-lite is not installed (Debian has no package of it): not measured beside\n\n");
  }

  void missing() const {
    if (!mpi_) fmt::print("OpenMPI was not found: install openmpi-bin and libopenmpi-dev, and build again\n");
    if (!gloo_) fmt::print("gloo was not found: install python3-torch\n");
  }

private:
  // The fastest algorithm of each size.
  void ours(samples& s, const std::string& transport, int ranks, const std::vector<std::uint64_t>& sizes) {
    measure(s, fmt::format("--transport {} --op allreduce --ranks {} --spin 1s", transport, ranks), sizes);
  }
  void ping(samples& s, const std::string& transport, const std::string& spin) {
    measure(s, fmt::format("--transport {} --op send --ranks 2 --spin {}", transport, spin), {ping_pong});
  }
  void measure(samples& s, const std::string& options, const std::vector<std::uint64_t>& sizes) {
    for (const std::uint64_t bytes : sizes) {
      const auto out = output_of(fmt::format("{} comm {} --min {}B --max {}B --format json",
                                             (build_ / "bin/regatta").string(), options, bytes, bytes));
      if (!out) throw std::runtime_error("regatta comm failed");
      double best = 1e9;
      const json document = json::parse(*out);
      for (const json& r : document.at("results")) best = std::min<double>(best, r.at("seconds").at("median"));
      s.add(bytes, best);
    }
  }

  void mpi(samples& s, const std::string& btl, int ranks, const std::vector<std::uint64_t>& sizes) {
    if (!mpi_) return;
    std::string command = fmt::format("mpirun --allow-run-as-root {} -n {} --mca pml ob1 --mca btl {} {}",
                                      ranks > 2 ? "--oversubscribe --bind-to none" : "--bind-to core", ranks, btl,
                                      (build_ / "tests/mpi_comm").string());
    for (const std::uint64_t bytes : sizes) command += fmt::format(" {}", bytes);
    const auto out = output_of(command + " 2>/dev/null");
    if (!out) {
      mpi_ = false;
      return;
    }
    std::istringstream lines(*out);
    std::uint64_t bytes = 0;
    double seconds = 0;
    for (std::string what; lines >> what >> bytes >> seconds;) s.add(bytes, seconds);
  }

  void run_gloo(samples& s, int ranks, const std::vector<std::uint64_t>& sizes) {
    std::string command = fmt::format("/usr/bin/python3 " REGATTA_SOURCE "/tests/bench/peers/gloo_allreduce.py {} {}",
                                      ranks, 29500 + next_port_++);
    for (const std::uint64_t bytes : sizes) command += fmt::format(" {}", bytes);
    const auto out = output_of(command + " 2>/dev/null");
    if (!out) {
      gloo_ = false;
      return;
    }
    const json times = json::parse(*out);
    for (const auto& [bytes, seconds] : times.items()) s.add(std::stoull(bytes), seconds);
  }

  static std::string text(const samples& s, std::uint64_t bytes) {
    return s.has(bytes) ? time_text(s.median(bytes)) : "-";
  }
  // theirs / ours; asked 0: nothing is asked.
  static std::string ratio(const samples& theirs, const samples& ours, std::uint64_t bytes, double asked) {
    if (!theirs.has(bytes) || !ours.has(bytes)) return "-";
    const std::string value = fmt::format("{:.2f}x", theirs.median(bytes) / ours.median(bytes));
    return asked > 0 ? fmt::format("{} ({}x)", value, asked) : value;
  }

  std::filesystem::path build_;
  bool mpi_ = false, gloo_ = false;
  int next_port_ = 0;
};

} // namespace

void compare_communication(const std::filesystem::path& build) {
  comparison c(build);
  c.missing();
  c.limits();
  c.all_reduce();
  c.eight_bytes();
  c.push_pull();
  c.crowded();
}

} // namespace regatta::bench
