// SPDX-License-Identifier: Apache-2.0
//
// `regatta preflight` on a host with devices: those of a kind that the engine has never heard of (streams.hpp).
#include "device_runs.hpp"

using namespace device_runs;

namespace {

// Runs preflight with the executor of the device `toy` alone: the folder of test plugins has others, too.
outcome preflight(const temporary_folder& s, const std::string& options, const std::string& environment) {
  fs::create_directories(s.path / "plugins");
  if (!fs::exists(s.path / "plugins/toy.so"))
    fs::create_symlink(fs::path(REGATTA_DEVICE_PLUGINS) / "toy_device.so", s.path / "plugins/toy.so");
  return program(s, "preflight --plugin-path plugins " + options, environment);
}

std::vector<json> toys(const json& document) {
  std::vector<json> found;
  for (const json& d : document.at("hosts").at(0).at("devices"))
    if (d.at("kind") == "toy") found.push_back(d);
  return found;
}

} // namespace

TEST_CASE("every device of the host is timed through its executor") {
  const temporary_folder s;
  const outcome o = preflight(s, "--format json", "REGATTA_FAKE_DEVICE=late");
  INFO(o.err);
  REQUIRE((o.code == 0 || o.code == 5)); // the rates of two toys on a busy machine may differ
  const json document = parsed(o.out);
  const auto devices = toys(document);
  REQUIRE(devices.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(devices[i]);
    CHECK(devices[i].at("executor") == "toy");
    CHECK(devices[i].at("index") == i);
    CHECK(devices[i].at("error").is_null());
    CHECK(devices[i].at("absent") == false);
    CHECK(devices[i].at("gemm") > 0);
    CHECK(devices[i].at("copy") > 0);
    CHECK(devices[i].at("before").at("name") == "fake");
    CHECK(devices[i].at("during").at("temperature_celsius") > 0);
  }
  for (const json& suspect : document.at("suspects")) CHECK(suspect.at("check") != "gpu");
}

TEST_CASE("a host whose devices fail is a suspect, with the reason") {
  const temporary_folder s;
  const std::string broken = "REGATTA_FAKE_DEVICE=broken"; // neither `late` nor a number: it cannot be opened
  const outcome o = preflight(s, "", broken);
  INFO(o.err);
  CHECK(o.code == 5);
  for (const char* gpu : {"gpu: GPU 0 (toy): not timed: executor toy: opening the device: ",
                          "gpu: GPU 1 (toy): not timed: executor toy: opening the device: "})
    CHECK_MESSAGE(o.out.find(gpu) != std::string::npos, o.out);
  CHECK(o.out.find("GPU TFLOP/s") != std::string::npos);
}
