// SPDX-License-Identifier: Apache-2.0
//
// Strategies of rg::compressor: the suite passes sound compressors and names the mistake of each broken one; bytes on
// the wire, figures of the result, and training in real processes.
#include "broken.hpp"

#include "simulator/simulation.hpp"

using namespace regatta::test;

TEST_CASE("compressors keep what they promise, and strategies made of them train") {
  const names all = {"message-bytes", "unbiased", "contraction", "residual", "message-sums"};
  const names of_runs = {"plan", "drain",  "replicas",      "clip",         "buckets",
                         "mean", "trains", "deterministic", "compressible", "ghosts"};
  const auto sound = [&](const std::string& id, const names& skipped) {
    CAPTURE(id);
    const findings promises = check("strategy/" + id, all, skipped);
    CAPTURE(promises.document);
    CHECK(promises.failed.empty());
    CHECK(promises.skipped == skipped);
    for (const char* over : {"all_gather", "ring", "sync_ps"}) {
      if (std::string_view(over) == "ring" && id != "random_block") continue;
      CAPTURE(over);
      const names may_skip = std::string_view(over) == "sync_ps" ? names{"clip"} : names{};
      const findings runs = check("strategy/" + id, of_runs, may_skip, std::string("--set over=") + over);
      CAPTURE(runs.document);
      CHECK(runs.failed.empty());
      CHECK(runs.skipped == may_skip);
    }
  };
  sound("qsgd", {"contraction", "message-sums"});
  sound("top_k", {"unbiased", "message-sums"});
  sound("random_block", {"unbiased"});
}

TEST_CASE("broken compressors") {
  finds("strategy/compressor_rounds", {"unbiased"}, {"message-bytes", "residual"});
  finds("strategy/compressor_forgets", {"residual", "mean"}, {"message-bytes", "contraction", "drain", "replicas"});
  finds("strategy/compressor_decays", {"residual", "mean"}, {"message-bytes", "contraction", "drain", "replicas"});
  finds("strategy/compressor_resets", {"residual", "mean"}, {"message-bytes", "contraction", "drain", "replicas"});
  finds("strategy/compressor_overshoots", {"unbiased"}, {"message-bytes", "drain", "replicas"});
  finds("strategy/compressor_overruns", {"message-bytes"}, {"plan"});
  finds("strategy/compressor_wastes", {"message-bytes"}, {"unbiased", "residual"});
  finds("strategy/compressor_boasts", {"contraction"}, {"message-bytes", "residual", "mean"});
  finds("strategy/compressor_adds_half", {"message-sums"}, {"message-bytes", "contraction", "residual"});
}

TEST_CASE("a compressor without add() does not run in a ring, and error feedback can be turned off") {
  const temporary_folder s;
  const auto dry = [&](const std::string& set) {
    std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"null\"\n[cluster]\nworkers = 2\n";
    return program(s, "run x.toml --dry-run --plugin-path " BROKEN_PLUGINS " --set strategy.plugin=top_k" + set);
  };
  const outcome ring = dry(" --set strategy.top_k.over=ring");
  CHECK(ring.code == 2);
  CHECK(ring.err.find("over = \"ring\": expected a compressor whose messages can be added") != std::string::npos);
  CHECK(dry("").code == 0);
  // What Karimireddy et al. show: without error feedback a biased compressor never applies the true gradient.
  CHECK(check("strategy/top_k", {"mean"}, {}, "--set error_feedback=false").failed == names{"mean"});
}

namespace {

regatta::simulation_result simulate(const std::string& id, const std::string& over, bool one_bucket = true) {
  static const auto plugins = regatta::registry::of_files({BROKEN_PLUGINS "/compressors_sound.so"});
  regatta::simulation_setup x;
  x.strategy = id;
  x.parameters = {{"over", over}, {"bucket", one_bucket ? 1 << 20 : 64}};
  x.workers = 4;
  x.servers = over == "sync_ps" ? 2 : 0;
  x.steps = 3;
  x.tensors = {320, 7, 100, 64};
  return regatta::simulate(plugins, x);
}

// Messages begin at multiples of 16 bytes.
std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

} // namespace

TEST_CASE("compressors send what docs/algorithms.md says") {
  // QSGD: 4 bytes, and one for each element.
  const std::uint64_t qsgd = padded(324) + padded(11) + padded(104) + padded(68);
  for (const bool one_bucket : {true, false}) {
    const auto r = simulate("qsgd", "all_gather", one_bucket);
    const std::uint64_t buckets = one_bucket ? 1 : 4;
    CHECK(r.counted[0].bytes_sent == 3 * 3 * qsgd);
    CHECK(r.counted[0].messages_sent == 3 * 3 * buckets);
    const auto& sums = r.records[0].sums;
    CHECK(sums.at("dense_bytes") == 3 * 4 * (320 + 7 + 100 + 64));
    CHECK(sums.at("message_bytes") == 3 * (324 + 11 + 104 + 68));
  }
  // In a ring of 4 workers each sends 3 times a chunk to be added, and 3 times one that is complete. All of the arena,
  // padded to 512 elements, is cut at multiples of 128: 128; 128; 64, 7 and 48; 52 and 64 elements.
  const auto block = [](std::uint64_t n) { return padded(4 + 4 * ((n + 1) / 2)); };
  const std::uint64_t chunks[] = {block(128), block(128), block(64) + block(7) + block(48), block(52) + block(64)};
  const auto ring = simulate("random_block", "ring");
  for (std::uint64_t w = 0; w < 4; ++w) {
    std::uint64_t sent = 0;
    for (std::uint64_t s = 0; s < 3; ++s) sent += chunks[(w + 4 - s) % 4] + chunks[(w + 4 - s + 1) % 4];
    CHECK(ring.counted[w].bytes_sent == 3 * sent);
  }
  // Workers push once and get weights in fp32 back.
  const auto servers = simulate("qsgd", "sync_ps");
  CHECK(servers.counted[0].bytes_sent == 3 * qsgd);
  CHECK(servers.counted[0].bytes_received == 3 * sizeof(float) * (320 + 16 + 112 + 64));
}

TEST_CASE("a result has the bytes and the error of each compressed tensor, and training learns") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"mlp\"\nhidden = [64]\n[optimizer]\nplugin = \"momentum\"\n"
                                      "lr = 0.02\n[transport]\nplugin = \"shm\"\n[cluster]\nworkers = 2\n"
                                      "[measure]\nwarmup = 0\nsteps = 30\nrepeats = 1\nbaseline = false\n";
  for (const auto& [id, over] : {std::pair("top_k", "all_gather"), {"random_block", "ring"}, {"qsgd", "sync_ps"}}) {
    CAPTURE(id);
    const std::string servers = std::string_view(over) == "sync_ps" ? " --set cluster.servers=1" : "";
    const outcome o =
        program(s, "run x.toml --progress never --format json --plugin-path " BROKEN_PLUGINS " --set strategy.plugin=" +
                       std::string(id) + " --set strategy." + id + ".over=" + over + servers);
    INFO(o.err);
    REQUIRE(o.code == 0);
    const json result = parsed(o.out).at("results").at(0);
    CHECK(result.at("replicas_identical") == true);
    CHECK(result.at("loss").at("last").get<double>() < 0.1 * result.at("loss").at("first").get<double>());
    const json& figures = result.at("strategy");
    const auto per_step = [&](const char* name) { return figures.at(name).at("per_step").get<double>(); };
    CHECK(per_step("message_bytes") < per_step("dense_bytes"));
    CHECK(per_step("message_bytes.fc1.weight") < per_step("message_bytes"));
    CHECK(per_step("error.fc1.weight") > 0);
    CHECK(per_step("encode_seconds.fc1.weight") > 0);
    CHECK(per_step("encode_seconds.fc1.weight") <= per_step("encode_seconds"));
    CHECK(!figures.contains("error.fc1.bias")); // not compressible
  }
}
