// SPDX-License-Identifier: Apache-2.0
//
// train.debug = "sync" on the emulated GPU: a fault is reported with op, layer, pass and tensor. That right results
// pass the checks is shown for every op by the tests of layers, which also run with the checks, as debug_*_test.
#include "layers_cases.hpp"

#include <regatta/layers.hpp>

#include <limits>
#include <optional>
#include <string>

using namespace layers_cases;

namespace {

// Two dense layers, the first with its ReLU, node 4 of the network, fused. A step enqueues five GEMMs: forward a and b,
// weights of b, data of b, weights of a.
struct two_layers {
  explicit two_layers(std::uint32_t precision = RG_F32, std::uint32_t debug = RG_DEBUG_SYNC) {
    const rg::value x = net.values("x", {6}), label = net.index("label", 3);
    rg::softmax_cross_entropy(rg::dense(rg::relu(rg::dense(x, "a", 5)), "b", 3), label);
    executed.emplace(executor_plugin, *net.graph(),
                     reference::execution_options{.batch = 4, .precision = precision, .debug = debug});
    executed->start(1);
    batch = make_batch(*net.graph(), 4, 3);
  }
  rg::network net;
  std::optional<reference::executed> executed;
  reference::batch batch;
};

// Sets a variable of the emulated GPU while it lives.
struct fault {
  fault(const char* variable, double number) : name(variable) { setenv(name, std::to_string(number).c_str(), 1); }
  ~fault() { unsetenv(name); }
  const char* name;
};

std::string error_of(two_layers& m) {
  try {
    m.executed->step(m.batch);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
std::string error_with_gemm(int number, std::uint32_t precision = RG_F32) {
  two_layers m(precision);
  const fault f("REGATTA_EMULATED_FAULT", number);
  return error_of(m);
}
// As error_with_gemm(), but the GEMM's last element is too large by `error`.
std::string error_with_wrong_gemm(int number, double error, std::uint32_t precision = RG_F32) {
  const fault f("REGATTA_EMULATED_ERROR", error);
  return error_with_gemm(number, precision);
}
std::string expected(const std::string& place) {
  return place + ": expected a finite number, got nan (train.debug = \"sync\"; everything before it was finite)";
}

} // namespace

TEST_CASE("a wrong kernel is named by op, layer, pass and tensor") {
  CHECK(error_with_gemm(1) == expected("op dense of layer a, forward pass: output relu4 at sample 3, element 4"));
  CHECK(error_with_gemm(2) == expected("op dense of layer b, forward pass: output b at sample 3, element 2"));
  CHECK(error_with_gemm(3) == expected("op dense of layer b, backward pass: gradient of b.weight at element 14"));
  CHECK(error_with_gemm(4) == expected("op dense of layer b, backward pass: gradient of relu4 at sample 3, element 4"));
  CHECK(error_with_gemm(5) == expected("op dense of layer a, backward pass: gradient of a.weight at element 29"));
  CHECK(error_with_gemm(6).empty());
  CHECK(error_with_gemm(2, RG_BF16) == expected("op dense of layer b, forward pass: output b at sample 3, element 2"));
}

TEST_CASE("a wrong but finite number is named by op, layer, pass and tensor") {
  const struct {
    int gemm;
    std::string where;
    int elements;
  } cases[] = {{1, "op dense of layer a, forward pass: output relu4 at sample 3, element 4", 20},
               {2, "op dense of layer b, forward pass: output b at sample 3, element 2", 12},
               {3, "op dense of layer b, backward pass: gradient of b.weight at element 14", 15},
               {4, "op dense of layer b, backward pass: gradient of relu4 at sample 3, element 4", 20},
               {5, "op dense of layer a, backward pass: gradient of a.weight at element 29", 30}};
  for (const auto& c : cases)
    for (const std::uint32_t precision : {RG_F32, RG_BF16}) {
      const std::string error = error_with_wrong_gemm(c.gemm, precision == RG_F32 ? 0.002 : 0.5, precision);
      CAPTURE(error);
      CHECK(error.substr(0, c.where.size() + 11) == c.where + ": expected ");
      CHECK(error.find("; 1 of " + std::to_string(c.elements) + " elements differ") != std::string::npos);
    }
  CHECK(error_with_wrong_gemm(6, 0.002).empty());
  CHECK(error_with_wrong_gemm(2, 1e-7).empty()); // less than rounding errors may cause
}

TEST_CASE("without the checks the same fault passes") {
  two_layers m(RG_F32, RG_DEBUG_NONE);
  const fault f("REGATTA_EMULATED_FAULT", 4);
  CHECK(error_of(m).empty());
  const fault wrong("REGATTA_EMULATED_ERROR", 0.5);
  const fault again("REGATTA_EMULATED_FAULT", 2);
  CHECK(error_of(m).empty());
}

TEST_CASE("in fp16 gradients that are not finite are left to the loss scale, outputs are checked") {
  CHECK(error_with_gemm(3, RG_F16).empty());
  CHECK(error_with_gemm(1, RG_F16).find("op dense of layer a, forward pass: output relu4") != std::string::npos);
}

TEST_CASE("a weight and an input that are not finite are named before the op that reads them") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  two_layers m;
  m.executed->set(m.executed->index_of("b.bias"), {0, nan, 0});
  CHECK(error_of(m) == expected("op dense of layer b, forward pass: b.bias at element 1"));
  two_layers other;
  other.batch.inputs[0][8] = nan;
  CHECK(error_of(other) == expected("op dense of layer a, forward pass: input x at sample 1, element 2"));
}

TEST_CASE("an error of the device is reported at the op in which it occurs") {
  two_layers m;
  CHECK(error_of(m).empty());
  std::string all;
  for (int wait = 1; wait <= 40; ++wait) {
    two_layers fresh;
    const fault f("REGATTA_EMULATED_FAILURE", wait);
    all += error_of(fresh) + "\n";
  }
  for (const char* place : {"op dense of layer a, forward pass", "op dense of layer b, forward pass",
                            "op dense of layer b, backward pass", "op dense of layer a, backward pass"})
    CHECK(all.find(place) != std::string::npos);
}

TEST_CASE("no graphs are captured, and evaluation is checked as well") {
  two_layers m;
  for (int step = 0; step < 3; ++step) CHECK(error_of(m).empty());
  CHECK(m.executed->kernels().find("graphs") == std::string::npos);
  const fault f("REGATTA_EMULATED_FAULT", 2);
  CHECK_THROWS_WITH(m.executed->evaluate(m.batch, 4),
                    expected("op dense of layer b, forward pass: output b at sample 3, element 2").c_str());
}
