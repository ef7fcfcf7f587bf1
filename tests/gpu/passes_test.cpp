// SPDX-License-Identifier: Apache-2.0
//
// Kernels that load packs of elements, on the host. They must be bit-identical to the same kernels element by element,
// which run if an address is no multiple of 16 bytes.
#include "kernels/loss.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/for_elements.hpp"
#include "kernels/normalization.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

// A stream that runs all work at once.
void cudnn::later(cudaStream_t, std::function<void()> work) {
  work();
}

using namespace cudnn;

namespace {

const number types[] = {number::f32, number::f16, number::bf16};
const picture pictures[] = {{16, 1, true}, {16, 9, true}, {8, 4, false}, {12, 6, true}, {12, 2, false},
                            {7, 3, true},  {5, 7, false}, {1, 1, false}, {40, 1, false}};
constexpr std::size_t samples = 5;

// n elements that start `shift` elements after a multiple of 64 bytes, filled with random values that do not depend on
// the shift. bits() includes one element before and one behind them, so that writes out of bounds show.
class memory {
public:
  memory(number type, std::size_t n, std::size_t shift, std::uint64_t seed)
      : type_(type), n_(n), bytes_((n + shift + 2) * size_of(type) + 128) {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data()) + size_of(type);
    first_ = bytes_.data() + (size_of(type) + (64 - at % 64) % 64 + shift * size_of(type));
    for (std::size_t i = 0; i < n; ++i) {
      const float x = rg::random_normals(seed, i / 4)[i % 4];
      by_type(type, [&](auto* of) { put(as(of, first_) + i, x); });
    }
  }
  template <class T = void> T* get() { return static_cast<T*>(static_cast<void*>(first_)); }
  // Includes the elements before and behind.
  std::vector<unsigned char> bits() const { return {first_ - size_of(type_), first_ + (n_ + 1) * size_of(type_)}; }

private:
  number type_;
  std::size_t n_;
  std::vector<unsigned char> bytes_;
  unsigned char* first_;
};

using outcome = std::vector<std::vector<unsigned char>>;
// Calls f(shift) for an aligned and an unaligned start; the results must be bit-identical.
template <class F> void same_when_shifted(const F& f) {
  const outcome packed = f(std::size_t{0}), single = f(std::size_t{1});
  CHECK(packed == single);
}

// An operand that records the width with which each element is stored.
struct noting {
  using number = std::uint16_t;
  using value = float;
  std::vector<int>* widths; // by element
  bool lies;
  bool aligned() const { return lies; }
  template <index_t W> void load(index_t first, float (&v)[W]) const {
    for (index_t k = 0; k < W; ++k) v[k] = static_cast<float>(first + k);
  }
  template <index_t W> void store(index_t first, const float (&v)[W]) const {
    for (index_t k = 0; k < W; ++k) {
      CHECK(v[k] == static_cast<float>(2 * (first + k)));
      CHECK((*widths)[first + k] == 0);
      (*widths)[first + k] = W;
    }
  }
};

} // namespace

TEST_CASE("every element has its turn once, in packs of 16 bytes but for the last, or alone") {
  for (std::size_t n = 0; n < 35; ++n)
    for (const bool aligned : {true, false}) {
      CAPTURE(n);
      std::vector<int> widths(n);
      for_elements(
          nullptr, n,
          [](index_t i, float& x) {
            CHECK(x == static_cast<float>(i));
            x *= 2;
          },
          noting{&widths, aligned});
      for (std::size_t i = 0; i < n; ++i) CHECK(widths[i] == (aligned && i < n / 8 * 8 ? 8 : 1));
    }
  CHECK(detail::pack_size<in<float>, of_channel<2>>() == 4);
  CHECK(detail::pack_size<in<float>, out<__half>>() == 8);
}

TEST_CASE("functions, sums and conversions give the same bits in packs") {
  for (const number t : types)
    for (const std::size_t n : {std::size_t{3}, std::size_t{64}, std::size_t{101}})
      same_when_shifted([&](std::size_t shift) {
        memory x(t, n, shift, 1), y(t, n, 0, 2), dy(t, n, 0, 3), dx(t, n, 0, 4), sum(t, n, 0, 5);
        kernels::map(nullptr, t, function::gelu, x.get(), y.get(), n);
        kernels::map_gradient(nullptr, t, function::gelu, x.get(), y.get(), dy.get(), dx.get(), n, true);
        kernels::sum(nullptr, t, x.get(), dx.get(), sum.get(), n);
        outcome all{x.bits(), y.bits(), dx.bits(), sum.bits()};
        for (const number to : types) {
          memory converted(to, n, 0, 6), added(to, n, 0, 7);
          kernels::convert(nullptr, t, x.get(), to, converted.get(), n);
          kernels::relayout(nullptr, t, {}, x.get(), to, {}, added.get(), n, true);
          all.push_back(converted.bits());
          all.push_back(added.bits());
        }
        return all;
      });
}

TEST_CASE("what goes by channels, and dropout, gives the same bits in packs") {
  for (const number t : types)
    for (const picture& p : pictures) {
      CAPTURE(p.channels);
      CAPTURE(p.spatial);
      const std::size_t n = samples * p.elements();
      same_when_shifted([&](std::size_t shift) {
        memory x(t, n, shift, 1), y(t, n, 0, 2), before(t, n, 0, 3), dropped(t, n, 0, 4),
            bias(number::f32, p.channels, 0, 5);
        const std::uint64_t seed = 77, first = std::uint64_t{1} << 33;
        kernels::dropout(nullptr, t, {&seed, &first, 26214, 1 / 0.6F}, p, x.get(), dropped.get(), samples, true);
        kernels::finish(nullptr, t, {bias.get<float>(), function::relu, p}, x.get(), before.get(), samples);
        kernels::finish(nullptr, t, {nullptr, function::tanh, p}, x.get(), nullptr, samples);
        return outcome{x.bits(), before.bits(), dropped.bits()};
      });
    }
}

TEST_CASE("batch norm gives the same bits in packs") {
  for (const number t : types)
    for (const picture& p : pictures)
      for (const bool relu : {false, true}) {
        CAPTURE(p.channels);
        CAPTURE(p.spatial);
        const std::size_t n = samples * p.elements(), c = p.channels;
        same_when_shifted([&](std::size_t shift) {
          memory x(t, n, shift, 1), y(t, n, 0, 2), plain(t, n, 0, 3), residual(t, n, 0, 4), dy(t, n, 0, 5),
              dx(t, n, 0, 6), dresidual(t, n, 0, 7), both(t, n, 0, 8);
          memory mean(number::f32, c, 0, 9), inverse(number::f32, c, 0, 10), scale(number::f32, c, 0, 11),
              bias(number::f32, c, 0, 12), dscale(number::f32, c, 0, 13), dbias(number::f32, c, 0, 14);
          kernels::normalising norm{};
          norm.p = p;
          norm.samples = samples;
          norm.epsilon = 1e-5F;
          norm.mean = mean.get<float>();
          norm.inverse = inverse.get<float>();
          norm.scale = scale.get<float>();
          norm.bias = bias.get<float>();
          kernels::normalise(nullptr, t, norm, x.get(), residual.get(), relu, y.get());
          kernels::normalise(nullptr, t, norm, x.get(), nullptr, relu, plain.get());
          std::vector<float> partials(kernels::partials_of(p, samples));
          kernels::normalise_gradients g{};
          g.dscale = dscale.get<float>();
          g.dbias = dbias.get<float>();
          g.dx = dx.get();
          g.dresidual = dresidual.get();
          g.add_dx = true;
          kernels::normalise_gradient(nullptr, t, norm, x.get(), y.get(), dy.get(), relu, g, partials.data());
          g.dx = g.dresidual = both.get(); // the residual and the input are the same tensor
          g.add_dx = false;
          g.add_residual = true;
          kernels::normalise_gradient(nullptr, t, norm, x.get(), y.get(), dy.get(), relu, g, partials.data());
          return outcome{y.bits(), plain.bits(), dx.bits(), dresidual.bits(), both.bits()};
        });
      }
}

TEST_CASE("the slope of the cross entropy gives the same bits in packs") {
  constexpr std::uint32_t rows = 6, classes = 11;
  const std::int32_t labels[rows] = {0, 10, 3, -1, 7, 7};
  const float share = 0.25F;
  for (const number t : types)
    same_when_shifted([&](std::size_t shift) {
      memory logits(t, rows * classes, shift, 1), dx(t, rows * classes, 0, 2), shifts(number::f32, rows, 0, 3);
      kernels::classifying c{};
      c.labels = labels;
      c.ignored = -1;
      c.rows = rows;
      c.classes = classes;
      c.smoothing = 0.1F;
      kernels::cross_entropy_gradient(nullptr, t, c, logits.get(), shifts.get<float>(), &share, dx.get(), true);
      return outcome{dx.bits()};
    });
}
