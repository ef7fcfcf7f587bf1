// SPDX-License-Identifier: Apache-2.0
//
// train.isa caps the engine's loops, oneDNN's kernels and the executor's own.
#include <doctest/doctest.h>

#include <regatta/simd.hpp>

#include "json.hpp"
#include "program.hpp"

using namespace regatta::test;
using nlohmann::json;

namespace {

const std::string options = "run x.toml --format json --progress never --set cluster.workers=2 ";

// Runs the small experiment and returns its document.
json document_of(const temporary_folder& s, const std::string& more, const std::string& environment = "") {
  std::ofstream(s.path / "x.toml") << small_experiment(5);
  const outcome o = program(s, options + more, environment);
  REQUIRE_MESSAGE(o.code == 0, o.err);
  return json::parse(o.out);
}

double last_loss(const json& entry) {
  return entry.at("loss").at("last").get<double>();
}

const std::string of_this_cpu{rg::simd::isa_names[static_cast<std::size_t>(rg::simd::choose())]};

} // namespace

TEST_CASE("a swept train.isa trains alike, and the result says what ran") {
  const temporary_folder s;
  const json d = document_of(s, "--sweep train.isa=auto,avx2,baseline");
  const json& all = d.at("results");
  REQUIRE(all.size() == 3);
  CHECK(d.at("context").at("hosts").at(0).at("isa") == of_this_cpu);
  CHECK(all[0].at("isa") == of_this_cpu);
  CHECK(all[2].at("isa") == "baseline");
  CHECK(all[2].at("kernels").at("instruction set") == "sse41");
  for (const json& entry : all) {
    CHECK(entry.at("status") == "ok");
    CHECK(entry.at("replicas_identical") == true);
    CHECK(entry.at("fingerprint").at("isa") == entry.at("isa"));
    CHECK(last_loss(entry) == doctest::Approx(last_loss(all[0])).epsilon(1e-4)); // sums in another order
  }
  if (rg::simd::choose() < rg::simd::isa::avx2) return;
  CHECK(all[1].at("isa") == "avx2");
  CHECK(all[1].at("kernels").at("instruction set") == "avx2");
  for (const auto& [op, kernel] : all[1].at("kernels").items())
    CHECK_MESSAGE(kernel.get<std::string>().find("avx512") == std::string::npos, op);
}

TEST_CASE("REGATTA_ISA lowers the instruction set of a host") {
  const temporary_folder s;
  const json d = document_of(s, "", "REGATTA_ISA=baseline");
  CHECK(d.at("context").at("hosts").at(0).at("isa") == "baseline");
  CHECK(d.at("results").at(0).at("isa") == "baseline");
  CHECK(d.at("results").at(0).at("kernels").at("instruction set") == "sse41");
  const outcome o = program(s, options, "REGATTA_ISA=sse3");
  CHECK(o.code == 2);
  CHECK(o.err.find("REGATTA_ISA in the environment: expected baseline, avx2") != std::string::npos);
}

TEST_CASE("plugins are asked under the cap: bf16 is refused without its instructions") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small_experiment(5);
  const outcome o = program(s, options + "--set train.precision=bf16 --set train.isa=avx2");
  CHECK(o.code == 77);
  CHECK(o.err.find("this CPU has no bf16 instructions") != std::string::npos);
}

TEST_CASE("a comparison names the instruction sets") {
  const temporary_folder s;
  (void)document_of(s, "--out a --set train.isa=baseline");
  (void)document_of(s, "--out b");
  const outcome o = program(s, "compare a b");
  CHECK(o.out.find("train.isa: baseline -> auto") != std::string::npos);
  if (of_this_cpu != "baseline") CHECK(o.out.find("fingerprint: isa differs") != std::string::npos);
}
