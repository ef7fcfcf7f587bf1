// SPDX-License-Identifier: Apache-2.0
//
// The sparse form of every optimiser: what a table's rows become, against the formulas in plain doubles.
#include "optimizer/table.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <regatta/random.hpp>

#include "optimizer_reference.hpp"

using namespace regatta;
using namespace optimizer_reference;

namespace {

constexpr std::uint64_t rows = 5000, size = 7, steps = 20;

float start(std::uint64_t row, std::uint64_t i) {
  return rg::random_normals(1, row * size + i)[0];
}
void init(std::span<const std::uint64_t> which, float* out) {
  for (const std::uint64_t row : which)
    for (std::uint64_t i = 0; i < size; ++i) *out++ = start(row, i);
}

struct touched {
  std::vector<std::int64_t> rows; // ascending
  std::vector<float> gradients;
};

// Some 30 rows of all, a few of which come in nearly every step.
touched touched_in(std::uint64_t step) {
  touched t;
  for (std::int64_t row : {0, 1, 2, 4999})
    if (rg::to_index(rg::random_bits(2, step, static_cast<std::uint32_t>(row))[0], 4)) t.rows.push_back(row);
  for (std::uint32_t k = 0; k < 26; ++k) t.rows.push_back(3 + rg::to_index(rg::random_bits(3, step, k)[0], 300));
  std::ranges::sort(t.rows);
  t.rows.erase(std::unique(t.rows.begin(), t.rows.end()), t.rows.end());
  for (const std::int64_t row : t.rows)
    for (std::uint32_t i = 0; i < size; ++i)
      t.gradients.push_back(rg::random_normals(4, static_cast<std::uint64_t>(row) * steps + step, i)[0]);
  return t;
}

// Those of a shard.
touched part(const touched& all, std::uint64_t shards, std::uint64_t shard) {
  touched t;
  for (std::size_t r = 0; r < all.rows.size(); ++r) {
    if (static_cast<std::uint64_t>(all.rows[r]) % shards != shard) continue;
    t.rows.push_back(all.rows[r]);
    t.gradients.insert(t.gradients.end(), all.gradients.begin() + static_cast<std::ptrdiff_t>(r * size),
                       all.gradients.begin() + static_cast<std::ptrdiff_t>((r + 1) * size));
  }
  return t;
}

// The whole table after all steps, including rows that no step touched.
std::vector<float> train(const optimizer_config& c, const row_table::shape& form, bool in_one_pass) {
  const update_rule rule(c, 1);
  std::vector<std::unique_ptr<row_table>> parts;
  for (std::uint64_t k = 0; k < form.shards; ++k) {
    row_table::shape mine = form;
    mine.shard = k;
    parts.push_back(std::make_unique<row_table>(rule, mine, init));
  }
  for (std::uint64_t step = 0; step < steps; ++step) {
    row_table::norm total{};
    for (std::uint64_t k = 0; k < form.shards; ++k) {
      const touched t = part(touched_in(step), form.shards, k);
      if (in_one_pass) {
        parts[k]->apply(t.rows, t.gradients.data(), step);
      } else { // two workers brought half each
        std::vector<float> half = t.gradients;
        for (float& g : half) g *= 0.5F;
        parts[k]->add(t.rows, half.data());
        parts[k]->add(t.rows, half.data());
        parts[k]->apply(step);
      }
      total.not_finite += parts[k]->partial().not_finite;
      total.sum_of_squares += parts[k]->partial().sum_of_squares;
    }
    if (c.clip_norm > 0)
      for (auto& p : parts) p->commit(total, step);
  }
  std::vector<float> all(rows * size);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto number = static_cast<std::int64_t>(row);
    parts[row % form.shards]->read({&number, 1}, all.data() + row * size);
  }
  return all;
}

// Only rows that a step touches move in it, and each counts its own updates.
std::vector<double> expected(const optimizer_config& c, const row_table::shape& form) {
  std::vector<element> state;
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint64_t i = 0; i < size; ++i) state.push_back({start(row, i)});
  for (std::uint64_t step = 0; step < steps; ++step) {
    const touched t = touched_in(step);
    double sum = 0;
    for (const float g : t.gradients) sum += double{g} * double{g};
    const double factor = c.clip_norm > 0 ? std::min(1.0, c.clip_norm / std::sqrt(sum)) : 1;
    for (std::size_t r = 0; r < t.rows.size(); ++r)
      for (std::uint64_t i = 0; i < size; ++i)
        state[static_cast<std::uint64_t>(t.rows[r]) * size + i].update(
            c, double{t.gradients[r * size + i]} * factor, double{form.decay}, c.lr * double{form.lr_scale});
  }
  std::vector<double> w;
  for (const element& e : state) w.push_back(e.w);
  return w;
}

} // namespace

TEST_CASE("20 steps of every optimiser equal a plain reference, and move the rows that were touched alone") {
  for (optimizer_config c : every_kind())
    for (const double clip : {0.0, 2.0})
      for (const auto& [decay, lr_scale] : {std::pair{1.0F, 1.0F}, {0.0F, 3.0F}}) {
        c.clip_norm = clip;
        CAPTURE(c.plugin);
        CAPTURE(c.nesterov);
        CAPTURE(clip);
        CAPTURE(lr_scale);
        const row_table::shape form{.rows = rows, .row = size, .decay = decay, .lr_scale = lr_scale};
        const auto want = expected(c, form);
        const auto got = train(c, form, true);
        double worst = 0;
        std::uint64_t moved = 0;
        for (std::uint64_t i = 0; i < got.size(); ++i) {
          worst = std::max(worst, std::abs(double{got[i]} - want[i]));
          moved += got[i] != start(i / size, i % size);
        }
        CHECK(worst < 1e-5);
        CHECK(moved > 100 * size);
        CHECK(moved <= 304 * size);
      }
}

TEST_CASE("whoever holds the rows, and however gradients come, the weights are the same to the bit") {
  for (optimizer_config c : every_kind()) {
    CAPTURE(c.plugin);
    const row_table::shape whole{.rows = rows, .row = size}, thirds{.rows = rows, .row = size, .shards = 3};
    const auto one = train(c, whole, true);
    CHECK(train(c, thirds, true) == one);
    CHECK(train(c, whole, false) == one);
    CHECK(train(c, thirds, false) == one);
  }
}

TEST_CASE("a row of another shard is refused, and nothing is changed") {
  const update_rule rule(configured("sgd"), 1);
  row_table table(rule, {.rows = rows, .row = size, .shards = 2, .shard = 1}, init);
  const std::vector<float> gradients(2 * size, 1.0F);
  for (const std::vector<std::int64_t>& which : {std::vector<std::int64_t>{1, 2}, {1, 5001}, {-1, 1}}) {
    CHECK_THROWS_AS(table.add(which, gradients.data()), failure);
    CHECK(table.held() == 0);
  }
  const std::vector<std::int64_t> mine{1, 3};
  table.add(mine, gradients.data());
  CHECK(table.held() == 2);
}

TEST_CASE("rows stay where they are shown to lie, also when others come") {
  const update_rule rule(configured("sgd"), 1);
  row_table table(rule, {.rows = rows, .row = size}, init);
  const std::vector<std::int64_t> which{3, 17, 4000}, others{4, 4999};
  const auto shown = table.addresses(which);
  std::vector<const float*> weights;
  for (const void* address : shown) weights.push_back(static_cast<const float*>(address));
  REQUIRE(weights.size() == which.size());
  for (std::size_t r = 0; r < which.size(); ++r)
    for (std::uint64_t i = 0; i < size; ++i) CHECK(weights[r][i] == start(static_cast<std::uint64_t>(which[r]), i));
  table.addresses(others);
  table.apply(which, std::vector<float>(which.size() * size, 1.0F).data(), 0);
  std::vector<float> read(which.size() * size);
  table.read(which, read.data());
  for (std::size_t r = 0; r < which.size(); ++r)
    for (std::uint64_t i = 0; i < size; ++i) {
      CHECK(weights[r][i] == read[r * size + i]);
      CHECK(weights[r][i] != start(static_cast<std::uint64_t>(which[r]), i));
    }
}
