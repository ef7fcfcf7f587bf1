// SPDX-License-Identifier: Apache-2.0
//
// The per-element arithmetic of the executor cudnn's kernels, on the host, against plain loops over windows.
#include "kernels/element_functions.hpp"
#include "kernels/pooling_window.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace cudnn;

namespace {

const std::vector<window> windows = {
    {6, 6, 3, 3, 2, 2, 2, 0}, {7, 5, 3, 2, 3, 3, 2, 0}, {7, 5, 4, 3, 3, 3, 2, 1},
    {5, 5, 5, 5, 3, 3, 1, 1}, {4, 6, 1, 1, 4, 6, 1, 0}, {9, 9, 3, 3, 2, 2, 4, 1},
};

std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) // few distinct values, so that some are equal
    x[i] = static_cast<float>(rg::to_index(rg::random_bits(seed, i)[0], 5)) - 2;
  return x;
}

// Calls f(output, element) for every element inside the image that an output's window covers, in order.
template <class F> void for_each_covered(const window& w, F f) {
  for (int oy = 0; oy < w.out_height; ++oy)
    for (int ox = 0; ox < w.out_width; ++ox)
      for (int ky = 0; ky < w.kernel_height; ++ky)
        for (int kx = 0; kx < w.kernel_width; ++kx) {
          const int y = oy * w.stride - w.padding + ky, x = ox * w.stride - w.padding + kx;
          if (y >= 0 && y < w.height && x >= 0 && x < w.width) f(oy * w.out_width + ox, y * w.width + x);
        }
}

} // namespace

TEST_CASE("max pooling keeps a NaN, wherever it is in the window") {
  const window w{.height = 2, .width = 2, .kernel_height = 2, .kernel_width = 2};
  for (std::size_t at = 0; at < 4; ++at) {
    CAPTURE(at);
    std::vector<float> x = {1, 4, 3, 2};
    x[at] = std::numeric_limits<float>::quiet_NaN();
    std::int32_t position = -1;
    CHECK(std::isnan(max_of(x.data(), w, 0, 0, position)));
    CHECK(position == static_cast<std::int32_t>(at));
  }
}

TEST_CASE("max pooling takes the first of the largest, and its gradient goes there") {
  for (const window& w : windows) {
    const std::size_t in = static_cast<std::size_t>(w.height * w.width),
                      out = static_cast<std::size_t>(w.out_height * w.out_width);
    const auto x = numbers(in, 1), dy = numbers(out, 2);
    std::vector<float> best(out, -std::numeric_limits<float>::infinity()), dx(in);
    std::vector<std::int32_t> where(out, -1), places(out);
    for_each_covered(w, [&](int o, int i) {
      if (x[static_cast<std::size_t>(i)] > best[static_cast<std::size_t>(o)]) {
        best[static_cast<std::size_t>(o)] = x[static_cast<std::size_t>(i)];
        where[static_cast<std::size_t>(o)] = i;
      }
    });
    for (std::size_t o = 0; o < out; ++o) dx[static_cast<std::size_t>(where[o])] += dy[o];
    for (std::size_t o = 0; o < out; ++o) {
      const int at = static_cast<int>(o);
      CHECK(max_of(x.data(), w, at / w.out_width, at % w.out_width, places[o]) == best[o]);
    }
    CHECK(places == where);
    for (int i = 0; i < static_cast<int>(in); ++i)
      CHECK(max_gradient(dy.data(), places.data(), w, i / w.width, i % w.width) == dx[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("average pooling divides by what is no padding, forward and backward") {
  for (const window& w : windows) {
    const std::size_t in = static_cast<std::size_t>(w.height * w.width),
                      out = static_cast<std::size_t>(w.out_height * w.out_width);
    const auto x = numbers(in, 3), dy = numbers(out, 4);
    std::vector<double> sums(out), counts(out), dx(in);
    for_each_covered(w, [&](int o, int i) {
      sums[static_cast<std::size_t>(o)] += static_cast<double>(x[static_cast<std::size_t>(i)]);
      ++counts[static_cast<std::size_t>(o)];
    });
    for_each_covered(w, [&](int o, int i) {
      dx[static_cast<std::size_t>(i)] +=
          static_cast<double>(dy[static_cast<std::size_t>(o)]) / counts[static_cast<std::size_t>(o)];
    });
    for (int o = 0; o < static_cast<int>(out); ++o)
      CHECK(static_cast<double>(average_of(x.data(), w, o / w.out_width, o % w.out_width)) ==
            doctest::Approx(sums[static_cast<std::size_t>(o)] / counts[static_cast<std::size_t>(o)]).epsilon(1e-6));
    for (int i = 0; i < static_cast<int>(in); ++i)
      CHECK(std::abs(static_cast<double>(average_gradient(dy.data(), w, i / w.width, i % w.width)) -
                     dx[static_cast<std::size_t>(i)]) < 1e-5);
  }
}

TEST_CASE("dropout keeps what layers.hpp says: 16 bits of the sample's random numbers for each element") {
  const std::uint64_t seed = rg::derive_seed(7, 3, 1, rg::stream_dropout);
  const std::uint32_t threshold = 26214; // 0.4
  std::size_t kept = 0;
  for (std::uint64_t sample : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{1} << 33})
    for (std::uint64_t e = 0; e < 4000; ++e) {
      const auto bits = rg::random_bits(seed, sample, static_cast<std::uint32_t>(e / 8));
      std::uint16_t parts[8];
      for (int k = 0; k < 4; ++k) {
        parts[2 * k] = static_cast<std::uint16_t>(bits[static_cast<std::size_t>(k)]);
        parts[2 * k + 1] = static_cast<std::uint16_t>(bits[static_cast<std::size_t>(k)] >> 16);
      }
      CHECK(keeps(seed, sample, e, threshold) == (parts[e % 8] >= threshold));
      kept += keeps(seed, sample, e, threshold);
    }
  CHECK(std::abs(static_cast<double>(kept) / 12000 - 0.6) < 0.02); // five standard deviations
}
