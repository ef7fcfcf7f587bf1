// SPDX-License-Identifier: Apache-2.0
//
// Compressors on a fake device (streams.hpp), whose memory the host cannot touch: messages are compressed, sent, added
// and decompressed as in host memory, to the bit.
#include "device_runs.hpp"

using namespace device_runs;

namespace {

// Small buckets, so that a message has several tensors, and a tensor of a ring several parts.
std::string with(const std::string& compressor, const std::string& over) {
  return " --set strategy.plugin=" + compressor + " --set strategy.over=" + over +
         " --set strategy.bucket=16384 --plugin-path " REGATTA_DEVICE_PLUGINS;
}

// Returns the stderr of a run that must fail with `code`.
std::string refusal(const temporary_folder& s, const std::string& options, int code) {
  std::ofstream(s.path / "x.toml") << experiment;
  fs::remove_all(s.path / "refused");
  const outcome o = program(s, "run x.toml --progress never --out refused" + options);
  CHECK(o.code == code);
  return o.err;
}

} // namespace

TEST_CASE("compressors compute on a device what they compute on the host") {
  const temporary_folder s;
  same_as_on_the_host(s, with("qsgd", "all_gather"), {"late", "1"});
  same_as_on_the_host(s, with("sign", "all_gather"), {"late", "1"});
  same_as_on_the_host(s, with("qsgd", "sync_ps"));
  same_as_on_the_host(s, with("sign", "sync_ps"));
  same_as_on_the_host(s, with("random_block", "ring") + " --set cluster.workers=3", {"late", "1"});
  same_as_on_the_host(s,
                      with("qsgd", "all_gather") + " --set strategy.error_feedback=true --set optimizer.clip_norm=0.5");
  same_as_on_the_host(s, with("sign", "all_gather") + " --set strategy.error_feedback=false");
}

TEST_CASE("messages that stay on the device, over a transport that reaches its memory") {
  const temporary_folder s;
  const std::string options = with("sign", "all_gather") + " --set strategy.lanes=1 --set transport.plugin=";
  const json expected = results(s, experiment, options + "shm");
  for (const char* order : {"late", "1"}) {
    INFO("order: ", order);
    compare(expected,
            results(s, experiment, options + "fake_link" + on_device, "REGATTA_FAKE_DEVICE=" + std::string(order)));
  }
}

TEST_CASE("the host waits for no message, and the result has their bytes alone") {
  const temporary_folder s;
  const std::string options = with("sign", "all_gather") + " --set strategy.lanes=1 --set transport.plugin=";
  for (const char* transport : {"tcp", "fake_link"})
    CHECK(waits(s, experiment, options + transport, 3) == waits(s, experiment, options + transport, 12));
  const json on_host = results(s, experiment, options + "tcp").at(0).at("strategy"),
             there = results(s, experiment, options + "tcp" + on_device).at(0).at("strategy");
  CHECK(there.at("message_bytes") == on_host.at("message_bytes"));
  CHECK(there.at("message_bytes.fc1.weight") == on_host.at("message_bytes.fc1.weight"));
  for (const char* unknown : {"error.fc1.weight", "encode_seconds.fc1.weight", "encode_seconds", "decode_seconds"}) {
    CAPTURE(unknown);
    CHECK(on_host.contains(unknown));
    CHECK(!there.contains(unknown));
  }
}

TEST_CASE("a compressor without kernels for the device is refused by name") {
  const temporary_folder s;
  const std::string none = refusal(s, with("top_k", "all_gather") + on_device, 2),
                    others = refusal(s, with("of_others", "all_gather") + on_device, 2);
  CHECK_MESSAGE(none.find("no kernels for this device: expected train.device = \"cpu\", got \"cuda\"") !=
                    std::string::npos,
                none);
  CHECK_MESSAGE(others.find("expected train.device = \"cpu\" or one of \"hip\", \"sycl\", got \"cuda\"") !=
                    std::string::npos,
                others);
  CHECK(results(s, experiment, with("top_k", "all_gather")).at(0).at("status") == "ok");
}

TEST_CASE("a compressor that takes the device's addresses for the host's dies") {
  const temporary_folder s;
  CHECK(results(s, experiment, with("touches", "all_gather")).at(0).at("status") == "ok");
  const std::string error = refusal(s, with("touches", "all_gather") + on_device, 1);
  CHECK_MESSAGE(error.find("SIGSEGV") != std::string::npos, error);
}
