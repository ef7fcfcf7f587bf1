// SPDX-License-Identifier: Apache-2.0
#include "optimizer/optimizer.hpp"

#include "base/failure.hpp"
#include "device/host.hpp"
#include "experiment/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <regatta/random.hpp>

#include "optimizer_reference.hpp"

using namespace regatta;
using namespace optimizer_reference;

namespace {

constexpr std::size_t elements = 1003; // no multiple of any vector's width
const std::vector<optimizer_slice> slices{{0, 333, 1, 1}, {333, 0, 1, 1}, {333, 17, 0, 1}, {350, 653, 0.5F, 2}};
constexpr int steps = 20;
host_processor on_host;

arithmetic::norm partial(optimizer& o) {
  double sums[2];
  o.partial(sums);
  return {sums[0], sums[1]};
}

float weight(std::size_t i) {
  return rg::random_normals(1, i)[0];
}
std::vector<float> gradient(int step) {
  std::vector<float> g(elements);
  for (std::size_t i = 0; i < elements; ++i) g[i] = rg::random_normals(2, i, static_cast<std::uint32_t>(step))[0];
  return g;
}
std::vector<float> weights() {
  std::vector<float> w(elements);
  for (std::size_t i = 0; i < elements; ++i) w[i] = weight(i);
  return w;
}

std::vector<double> run_reference(const optimizer_config& c, double workers) {
  std::vector<element> state;
  for (std::size_t i = 0; i < elements; ++i) state.push_back({weight(i)});
  for (int step = 0; step < steps; ++step) {
    const auto g = gradient(step);
    double sum = 0;
    for (const float v : g) sum += static_cast<double>(v) * static_cast<double>(v);
    const double factor = c.clip_norm > 0 ? std::min(1.0, c.clip_norm / std::sqrt(sum)) : 1;
    for (const auto& s : slices)
      for (auto i = s.first; i < s.first + s.count; ++i)
        state[i].update(c, static_cast<double>(g[i]) * factor, static_cast<double>(s.decay),
                        c.lr * (c.lr_scaling == "linear" ? workers : 1) * static_cast<double>(s.lr_scale));
  }
  std::vector<double> w(elements);
  std::ranges::transform(state, w.begin(), &element::w);
  return w;
}

// 20 steps with owned ranges and applied ranges that end where `owned` and `applied` say; some applied out of order.
std::vector<float> run(const optimizer_config& c, std::vector<std::size_t> owned, std::vector<std::size_t> applied,
                       std::int64_t workers = 1, std::size_t shift = 0) {
  std::vector<float> memory(elements + shift), g_memory(elements + shift);
  float* const w = memory.data() + shift;
  std::ranges::copy(weights(), w);
  optimizer o(c, workers, slices, on_host);
  for (std::size_t k = 0; k + 1 < owned.size(); ++k) o.own(owned[k], owned[k + 1] - owned[k], w + owned[k]);
  for (int step = 0; step < steps; ++step) {
    std::ranges::copy(gradient(step), g_memory.begin() + static_cast<std::ptrdiff_t>(shift));
    const std::span<const float> g(g_memory.data() + shift, elements);
    std::vector<std::size_t> order(applied.size() - 1);
    std::iota(order.begin(), order.end(), 0);
    if (step % 2) std::ranges::reverse(order);
    for (const auto k : order)
      o.apply(applied[k], g.subspan(applied[k], applied[k + 1] - applied[k]), static_cast<std::uint64_t>(step));
    if (o.deferred()) CHECK(o.commit(partial(o), static_cast<std::uint64_t>(step)));
  }
  return {w, w + elements};
}

std::string message(auto f, exit_code expected) {
  try {
    f();
  } catch (const failure& e) {
    CHECK(e.code() == expected);
    return e.what();
  }
  FAIL("nothing was thrown");
  return {};
}

} // namespace

TEST_CASE("clipping leaves a buffer with an infinite element as it is") {
  host_processor host;
  rg_work work{};
  work.struct_size = sizeof work;
  work.kind = RG_OP_CLIP;
  std::vector<float> x{3, 4, 0};
  work.target = x.data();
  work.count = x.size();
  work.max_norm = 1;
  REQUIRE(host.run(work));
  CHECK(x[0] == doctest::Approx(0.6));
  x = {3, 4, std::numeric_limits<float>::infinity()};
  REQUIRE(host.run(work));
  CHECK(x[0] == 3);
  CHECK(std::isinf(x[2]));
}

TEST_CASE("20 steps equal a plain reference in double, exemptions from decay and all") {
  for (auto c : every_kind())
    for (const double clip : {0.0, 3.0, 1e6})
      for (const char* scaling : {"none", "linear"}) {
        c.clip_norm = clip;
        c.lr_scaling = scaling;
        CAPTURE(c.plugin);
        CAPTURE(c.nesterov);
        CAPTURE(clip);
        CAPTURE(scaling);
        const auto got = run(c, {0, elements}, {0, elements}, 3);
        const auto expected = run_reference(c, 3);
        double worst = 0;
        for (std::size_t i = 0; i < elements; ++i)
          worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]) / (1 + std::abs(expected[i])));
        CHECK(worst < 5e-6);
      }
}

TEST_CASE("decay factors count: an exempt tensor moves as without decay") {
  auto c = configured("sgd");
  const auto with = run(c, {0, elements}, {0, elements});
  c.weight_decay = 0;
  const auto without = run(c, {0, elements}, {0, elements});
  for (std::size_t i = 333; i < 350; ++i) CHECK(with[i] == without[i]);
  int different = 0;
  for (std::size_t i = 0; i < 333; ++i) different += with[i] != without[i];
  CHECK(different > 300);
}

TEST_CASE("however ranges are cut, owned and aligned, the weights are the same to the bit") {
  const std::vector<std::vector<std::size_t>> cuts{{0, elements},
                                                   {0, 1, 2, 500, elements},
                                                   {0, 16, 333, 340, 341, 350, 351, elements},
                                                   {0, 123, 500, 777, elements}};
  for (auto c : every_kind()) {
    CAPTURE(c.plugin);
    const auto whole = run(c, cuts[0], cuts[0]);
    for (const auto& owned : cuts)
      for (const auto& applied : cuts)
        for (const std::size_t shift : {0, 1, 3}) CHECK(run(c, owned, applied, 1, shift) == whole);
  }
}

TEST_CASE("Adam's t follows the elements, not the ranges of the moment") {
  const auto c = configured("adam");
  auto w = weights(), expected = weights();
  optimizer o(c, 1, slices, on_host), once(c, 1, slices, on_host);
  o.own(0, elements, w.data());
  once.own(0, 400, expected.data());
  const auto g = gradient(0);
  const std::span<const float> all(g);
  // Elements 100 to 399 are updated three times in all, however.
  o.apply(0, all.first(400), 0);
  o.apply(100, all.subspan(100, 500), 1);
  o.apply(50, all.subspan(50, 350), 2);
  for (std::uint64_t step = 0; step < 3; ++step) once.apply(0, all.first(400), step);
  for (std::size_t i = 100; i < 400; ++i) REQUIRE(w[i] == expected[i]);
  for (std::size_t i = 600; i < elements; ++i) REQUIRE(w[i] == weight(i));
}

TEST_CASE("a norm that is not finite skips the whole step and leaves no trace") {
  for (auto c : every_kind()) {
    CAPTURE(c.plugin);
    c.clip_norm = 1;
    auto w = weights(), expected = weights();
    optimizer o(c, 1, slices, on_host), undisturbed(c, 1, slices, on_host);
    o.own(0, elements, w.data());
    undisturbed.own(0, elements, expected.data());
    const auto g = gradient(0);
    auto poisoned = g;
    poisoned[17] = std::numeric_limits<float>::quiet_NaN();
    poisoned[900] = std::numeric_limits<float>::infinity();

    o.apply(0, std::span<const float>(poisoned).first(500), 0);
    CHECK(partial(o).not_finite == 1);
    o.apply(500, std::span<const float>(poisoned).subspan(500), 0);
    CHECK(partial(o).not_finite == 2);
    CHECK_FALSE(o.commit(partial(o), 0));
    CHECK(w == weights());
    CHECK(partial(o).not_finite == 0);
    CHECK(partial(o).sum_of_squares == 0);

    for (optimizer* each : {&o, &undisturbed}) {
      each->apply(0, g, 1);
      CHECK(each->commit(partial(*each), 1));
    }
    CHECK(w == expected);
    CHECK(w != weights());

    // A non-finite gradient or norm of another owner counts as well.
    o.apply(0, g, 2);
    CHECK_FALSE(o.commit({1, 1}, 2));
    o.apply(0, g, 2);
    CHECK_FALSE(o.commit({0, std::numeric_limits<double>::infinity()}, 2));
    CHECK(w == expected);
  }
}

TEST_CASE("deferred updates wait for the norm of all owners") {
  auto c = configured("sgd");
  c.lr = 1;
  c.weight_decay = 0;
  c.clip_norm = 5;
  std::vector<float> w(4, 0);
  optimizer o(c, 1, {{0, 4, 1, 1}}, on_host);
  CHECK(o.deferred());
  o.own(0, 2, w.data());
  o.own(2, 2, w.data() + 2);
  const std::vector<float> g{3, 4, 0, 0};
  o.apply(0, g, 0);
  CHECK(w == std::vector<float>(4, 0));
  CHECK(partial(o).sum_of_squares == 25);
  CHECK(o.commit({0, 100}, 0)); // together with somebody's 75: a norm of 10, twice of what is allowed
  CHECK(w == std::vector<float>{-1.5F, -2, 0, 0});
  o.apply(0, g, 1);
  CHECK(o.commit({0, 25}, 1)); // just within
  CHECK(w == std::vector<float>{-4.5F, -6, 0, 0});
}

TEST_CASE("an update of no elements adds nothing to the sum of squares, also if the processor skips empty work") {
  struct skipping final : processor {
    void* allocate(std::uint64_t bytes) override { return on_host.allocate(bytes); }
    void* allocate_shared(std::uint64_t bytes) override { return on_host.allocate_shared(bytes); }
    bool run(const rg_work& w) override { return w.count == 0 || on_host.run(w); }
    void copy(void* to, const void* from, std::uint64_t bytes) override { on_host.copy(to, from, bytes); }
  } unit;
  auto c = configured("sgd");
  c.clip_norm = 1000;
  std::vector<float> w(4, 0);
  optimizer o(c, 1, {{0, 4, 1, 1}}, unit);
  o.own(0, 4, w.data());
  const std::vector<float> g{3, 4, 1, 2};
  o.apply(0, std::span(g).first(2), 0);
  o.apply(2, std::span(g).last(2), 0);
  CHECK(partial(o).sum_of_squares == 30);
  CHECK(o.commit({0, 30}, 0));
  o.apply(0, g, 1);
  o.apply(4, {}, 1);
  CHECK(partial(o).sum_of_squares == 30);
}

TEST_CASE("the sum of squares does not follow the order of applies") {
  auto c = configured("sgd");
  c.clip_norm = 1;
  const auto g = gradient(3);
  auto w = weights();
  std::vector<double> sums;
  for (const bool backwards : {false, true}) {
    optimizer o(c, 1, slices, on_host);
    o.own(0, elements, w.data());
    for (std::size_t k = 0; k < 10; ++k) {
      const std::size_t first = (backwards ? 9 - k : k) * 100;
      o.apply(first, std::span(g).subspan(first, 100), 0);
    }
    sums.push_back(partial(o).sum_of_squares);
  }
  CHECK(sums[0] == sums[1]);
}

TEST_CASE("padding and frozen elements stay zero") {
  for (const auto& c : every_kind()) {
    std::vector<float> w(64, 0);
    const std::vector<float> g(64, 0);
    optimizer o(c, 1, {{0, 64, 1, 1}}, on_host);
    o.own(0, 64, w.data());
    for (std::uint64_t step = 0; step < 3; ++step) o.apply(0, g, step);
    CHECK(w == std::vector<float>(64, 0));
  }
}

TEST_CASE("state is counted") {
  std::vector<float> w(elements);
  const std::vector<std::pair<const char*, std::uint64_t>> expected{
      {"sgd", 0}, {"momentum", 4}, {"adagrad", 4}, {"adam", 8}};
  for (const auto& [name, bytes] : expected) {
    optimizer o(configured(name), 1, slices, on_host);
    o.own(0, 10, w.data());
    o.own(20, 30, w.data() + 20);
    CHECK(o.state_bytes() == 40 * bytes);
    CHECK_FALSE(o.deferred());
  }
}

TEST_CASE("misuse is refused by name and changes nothing") {
  auto w = weights();
  optimizer o(configured("momentum"), 1, slices, on_host);
  const auto g = gradient(0);
  const auto part = std::span<const float>(g).first(20);
  CHECK(message([&] { o.apply(0, part, 0); }, exit_code::plugin).find("element 0") != std::string::npos);
  o.own(10, 20, w.data() + 10);
  o.own(40, 10, w.data() + 40);
  CHECK(message([&] { o.apply(0, part, 0); }, exit_code::plugin).find("element 0") != std::string::npos);
  CHECK(message([&] { o.apply(20, part, 0); }, exit_code::plugin).find("element 30") != std::string::npos);
  CHECK(w == weights());
  o.apply(5000, {}, 0);
  for (const auto& [first, count] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 11}, {10, 20}, {15, 1}, {29, 5}, {35, 6}, {0, 100}})
    CHECK(message([&, f = first, n = count] { o.own(f, n, w.data()); }, exit_code::plugin).find("owned already") !=
          std::string::npos);
  CHECK(message([&] { o.own(1000, 4, w.data()); }, exit_code::plugin).find("the arena has 1003") != std::string::npos);
  CHECK(message([&] { o.own(1, UINT64_MAX, w.data()); }, exit_code::plugin).find("the arena") != std::string::npos);
  o.own(30, 10, w.data() + 30); // exactly between
  o.apply(10, std::span<const float>(g).first(40), 0);

  CHECK(message([] { optimizer(configured("lars"), 1, slices, on_host); }, exit_code::usage).find("lars") !=
        std::string::npos);
  auto c = configured("adam");
  c.epsilon = 1e-60; // zero as a float
  CHECK(message([&] { optimizer(c, 1, slices, on_host); }, exit_code::usage).find("epsilon") != std::string::npos);
  c = configured("sgd");
  c.lr_scaling = "square";
  CHECK(message([&] { optimizer(c, 1, slices, on_host); }, exit_code::usage).find("lr_scaling") != std::string::npos);
}
