// SPDX-License-Identifier: Apache-2.0
//
// A device of a kind that the engine has never heard of: an executor, a transport and strategies with kernels of their
// own agree on the name "toy". Its memory, streams and fences mean something to them alone (streams.hpp).
#include "device_runs.hpp"

using namespace device_runs;

namespace {

void same_on_a_toy(const temporary_folder& s, const std::string& options, const std::vector<std::string>& orders) {
  same_as_on_the_host(s, options, orders, experiment, "toy");
}

} // namespace

TEST_CASE("strategies learn the same on a device of another kind, over transports of the host's memory") {
  const temporary_folder s;
  same_on_a_toy(s, "--sweep strategy.plugin=allreduce,sync_ps,dgc --set optimizer.clip_norm=0", {"late", "1"});
  same_on_a_toy(s, "--set strategy.plugin=sync_ps --set cluster.colocate=true --set transport.plugin=shm", {"late"});
}

// It reads and writes the device's memory through the descriptors of its regions (rg_device.export_memory).
TEST_CASE("over a transport of the same kind, ordered by fences alone") {
  const temporary_folder s;
  const std::string options =
      "--set optimizer.plugin=adam --set optimizer.clip_norm=0.5 --set strategy.lanes=1 --sweep "
      "strategy.algorithm=native,ring ";
  const json expected = results(s, experiment, options + "--set transport.plugin=shm");
  for (const char* order : {"late", "1"}) {
    INFO("order: ", order);
    compare(expected, results(s, experiment, options + "--set transport.plugin=toy_link" + on("toy"),
                              "REGATTA_FAKE_DEVICE=" + std::string(order)));
  }
}

TEST_CASE("functions of a strategy's own are told the kind") {
  const temporary_folder s;
  const std::string plugins = " --plugin-path " REGATTA_DEVICE_PLUGINS;
  same_on_a_toy(s, "--set cluster.workers=1 --set strategy.plugin=own_kernel --set transport.plugin=null" + plugins,
                {"late"});
  same_on_a_toy(s, "--set strategy.plugin=sign" + plugins, {"late"});
}

TEST_CASE("a transport or an executor of another kind is refused by name, and so is a kind that nobody has") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << experiment;
  const auto says = [&](const std::string& options, const std::string& text) {
    const outcome o = program(s, "run x.toml --progress never --out r " + options);
    CAPTURE(options);
    CHECK(o.code == 2);
    CHECK_MESSAGE(o.err.find(text) != std::string::npos, o.err);
  };
  const std::string link = "--set strategy.lanes=1 --set transport.plugin=";
  says(link + "fake_link" + on("toy"), "it is for train.device = \"cuda\"; use shm or tcp");
  says(link + "toy_link" + on("cuda"), "it is for train.device = \"toy\"; use shm or tcp");
  says("--set train.executor=toy" + on("cuda"), "expected one for train.device = \"cuda\", got toy");
  says(on("top"), "train.device: expected cpu, cuda or the kind of device of another executor");
}
