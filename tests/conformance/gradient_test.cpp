// SPDX-License-Identifier: Apache-2.0
//
// Test `gradient` of `regatta check` with correct models, and with an executor whose gradients are all 5 % wrong. The
// loss does not change then, so one run must find every tensor.
#include "check/harness/runner.hpp"
#include "check/harness/suite.hpp"
#include "check/model/model_under_test.hpp"

#include <doctest/doctest.h>

#include <map>

#include <regatta/plugin.hpp>

using namespace regatta;
using namespace regatta::conformance;

namespace {

double factor = 1; // of all gradients
struct bound_memory {
  std::vector<std::pair<float*, std::uint64_t>> gradients;
};
std::map<void*, bound_memory> bound;
rg_model original;

rg_status scaled_bind(void* self, const rg_model_memory* memory) {
  auto info = rg::make_versioned<rg_model_info>();
  original.describe(self, &info);
  auto& all = bound[self].gradients;
  all.clear();
  for (std::uint32_t t = 0; t < info.tensor_count; ++t)
    if (memory->gradients[t])
      all.emplace_back(static_cast<float*>(memory->gradients[t]),
                       rg::storage_of(rg::copy_versioned(rg::at_stride(info.tensors, t))));
  return original.bind(self, memory);
}

rg_status scaled_step(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result) {
  const rg_status status = original.step(self, batch, hooks, result);
  for (const auto& [first, count] : bound[self].gradients)
    for (std::uint64_t i = 0; i < count; ++i) first[i] *= static_cast<float>(factor);
  return status;
}

verdict gradient_of(const std::string& model, std::uint64_t seed,
                    const std::map<std::string, nlohmann::json>& parameters = {}) {
  const auto plugins =
      registry::of_files({REGATTA_BUILD "/lib/regatta/onednn.so", REGATTA_BUILD "/lib/regatta/resnet.so",
                          REGATTA_BUILD "/lib/regatta/transformer.so", BROKEN_PLUGINS "/broken_networks.so"});
  auto& executor = const_cast<component&>(plugins.find(kind::executor, "onednn"));
  original = executor.executor_model;
  executor.executor_model.bind = scaled_bind;
  executor.executor_model.step = scaled_step;
  subject s;
  s.plugins = &plugins;
  s.tested = &plugins.find(kind::model, model);
  s.file = s.tested->file;
  s.parameters = parameters;
  s.seed = seed;
  for (const auto& t : tests_of(s))
    if (t.name == std::string("gradient")) return run_in_process(t, s);
  throw std::runtime_error("there is no such test");
}

void finds_every_tensor(const std::string& model, std::uint64_t seed, std::size_t tensors, std::size_t with_gradient,
                        const std::map<std::string, nlohmann::json>& parameters = {}) {
  CAPTURE(model);
  CAPTURE(seed);
  factor = 1;
  const verdict right = gradient_of(model, seed, parameters);
  CHECK_MESSAGE(right.result == outcome::passed, right.message);
  for (const double wrong : {1.05, 0.95}) {
    factor = wrong;
    const verdict v = gradient_of(model, seed, parameters);
    CHECK(v.result == outcome::failed);
    const std::string expected =
        "of " + std::to_string(tensors) + " tensors, " + std::to_string(with_gradient) + " are wrong: ";
    CHECK_MESSAGE(v.message.find(expected) == 0, v.message);
  }
}

const std::map<std::string, nlohmann::json> small_transformer = {
    {"layers", 1}, {"hidden", 16}, {"heads", 2}, {"vocabulary", 50}, {"sequence", 6}};
const std::map<std::string, nlohmann::json> small_resnet = {{"input", "cifar10"}, {"depth", 18}, {"width", 4}};

} // namespace

// Biases before batch normalisation have no gradient.
TEST_CASE("5 % in any tensor of a network with batch normalisation is found, and a right one passes") {
  finds_every_tensor("conv_bn_relu", 1, 30, 23);
}

TEST_CASE("many seeds, for a quarter of an hour" * doctest::skip()) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    finds_every_tensor("conv_bn_relu", seed, 30, 23);
    finds_every_tensor("transformer", seed, 31, 31, small_transformer);
    if (seed <= 3) finds_every_tensor("resnet50", seed, 62, 62, small_resnet);
  }
}
