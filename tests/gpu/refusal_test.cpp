// SPDX-License-Identifier: Apache-2.0
//
// The GPU plugins on a machine without a GPU: they load, can be described, and refuse to run with one line.
#include "program.hpp"

#include <algorithm>

using namespace regatta::test;

namespace {

// With a GPU nothing is refused, and other tests cover it.
bool has_gpu() {
  return fs::exists("/dev/nvidiactl");
}

const std::string tiny = R"(
[model]
plugin = "mlp"
hidden = [16]
[train]
batch = 8
[cluster]
workers = 2
[measure]
steps = 1
warmup = 0
repeats = 1
baseline = false
)";

outcome run(const temporary_folder& s, const std::string& options) {
  std::ofstream(s.path / "x.toml") << tiny;
  return program(s, "run x.toml --out result --progress never " + options);
}

void check_refused(const outcome& o, const std::string& by) {
  CAPTURE(o.out);
  CAPTURE(o.err);
  CHECK(o.code == 77);
  const std::string line = by + ": there is no NVIDIA ";
  CHECK(o.err.find(line) != std::string::npos);
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
}

} // namespace

TEST_CASE("nccl loads without a driver, and can be listed and described") {
  const temporary_folder s;
  const outcome list = program(s, "list transports --json");
  CHECK(list.code == 0);
  const json transports = parsed(list.out).at("transports");
  CHECK(std::any_of(transports.begin(), transports.end(), [](const json& t) { return t.at("id") == "nccl"; }));
  const outcome described = program(s, "describe transport/nccl --json");
  CAPTURE(described.err);
  CHECK(described.code == 0);
  CHECK(parsed(described.out).at("parameters").size() == 1);
}

TEST_CASE("the executor cudnn loads without a driver, and doctor says why it has no device") {
  const temporary_folder s;
  const json executors = parsed(program(s, "list executors --json").out).at("executors");
  const bool there =
      std::any_of(executors.begin(), executors.end(), [](const json& e) { return e.at("id") == "cudnn"; });
  const json doctor = parsed(program(s, "doctor --json").out);
  const json devices = doctor.at("devices");
  CHECK(devices.size() == (there ? 1 : 0));
  if (!there || has_gpu()) return;
  CHECK(devices[0].at("devices").empty());
  CHECK(devices[0].at("error").get<std::string>().find("there is no NVIDIA ") != std::string::npos);
}

TEST_CASE("train.device = \"cuda\" on a machine without a GPU ends with one line and exit code 77") {
  if (has_gpu()) return;
  const temporary_folder s;
  const outcome o = run(s, "--set train.device=cuda");
  CAPTURE(o.err);
  CHECK(o.code == 77);
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
}

TEST_CASE("a run over nccl on a machine without a GPU ends with one line and exit code 77") {
  if (has_gpu()) return;
  const temporary_folder s;
  check_refused(run(s, "--set transport.plugin=nccl"), "transport nccl");
}
