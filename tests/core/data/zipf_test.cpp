// SPDX-License-Identifier: Apache-2.0
//
// Generated indices by Zipf's law.
#include "data_fixture.hpp"

#include "data/zipf.hpp"

#include <cmath>
#include <map>

using namespace data_fixture;
using namespace regatta;

TEST_CASE("random words come by Zipf, classes evenly") {
  const std::vector<rg_input> inputs{index("word", RG_I32, {10}, 100'000), index("class", RG_I32, {10}, 1000)};
  data_config c;
  c.source = "random";
  const auto source = make_source(c, inputs, 1);
  const filled data = fill(*source, inputs, 0, 20'000, 0, 20'000);
  std::map<std::int64_t, int> words, classes;
  for (std::size_t i = 0; i < 200'000; ++i) {
    ++words[data.integer(0, i)];
    ++classes[data.integer(1, i)];
  }
  double harmonic = 0;
  for (int k = 1; k <= 100'000; ++k) harmonic += 1.0 / k;
  for (const int k : {1, 2, 3, 10, 30}) CHECK(words[k - 1] == doctest::Approx(200'000 / harmonic / k).epsilon(0.1));
  CHECK(words.rbegin()->first < 100'000);
  CHECK(classes[0] < 300);
  filled parts = fill(*source, inputs, 0, 20'000, 0, 5'000);
  parts.append(fill(*source, inputs, 0, 20'000, 5'000, 15'000));
  CHECK(parts.bytes == data.bytes);
  c.zipf = 0;
  const filled even = fill(*make_source(c, inputs, 1), inputs, 0, 20'000, 0, 20'000);
  int first = 0;
  for (std::size_t i = 0; i < 200'000; ++i) first += even.integer(0, i) == 0;
  CHECK(first < 20);
}

TEST_CASE("zipf of other exponents") {
  for (const double s : {0.5, 1.5, 2.0}) {
    CAPTURE(s);
    const zipf z(50, s);
    std::vector<int> counts(50);
    for (std::uint64_t i = 0; i < 100'000; ++i) ++counts.at(z.at(7, i));
    double total = 0;
    for (int k = 1; k <= 50; ++k) total += std::pow(k, -s);
    for (const int k : {1, 2, 5, 20}) {
      const double expected = 100'000 * std::pow(k, -s) / total;
      CHECK(std::abs(counts[static_cast<std::size_t>(k - 1)] - expected) < 5 * std::sqrt(expected));
    }
  }
}
