// SPDX-License-Identifier: Apache-2.0
//
// Compressors for tests, in host memory and on the fake device: QSGD, signs with error feedback, and one whose messages
// can be added. A kernel is a function that is enqueued by the stream's handle, as in own_kernel.cpp.
#include "../../conformance/compressors.hpp"

#include <array>
#include <functional>
#include <string_view>

namespace {

constexpr std::array<std::string_view, 2> fakes = {"cuda", "toy"};

template <class F> void enqueue(const rg_run& on, F f) {
  (*static_cast<std::function<void(std::function<void()>)>*>(on.stream))(std::move(f));
}

// C with kernels that compute what C does.
template <class C> struct with_kernels : C {
  static constexpr auto devices = fakes;
  using C::compress, C::decompress;
  void compress(const rg_run& on, std::span<const float> x, std::span<std::byte> message, std::uint64_t seed) {
    enqueue(on, [=] { C().compress(x, message, seed); });
  }
  void decompress(const rg_run& on, std::span<const std::byte> message, std::span<float> y) {
    enqueue(on, [=] { C().decompress(message, y); });
  }
};

using qsgd = with_kernels<test::qsgd>;

struct random_block : with_kernels<test::random_block> {
  using test::random_block::add;
  void add(const rg_run& on, std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n) {
    enqueue(on, [=] { test::random_block().add(sum, message, n); });
  }
};

// The sign of each element, a bit, scaled by the mean magnitude (Karimireddy et al. 2019, section 4).
struct sign {
  static constexpr auto promise = rg::compression::contraction;
  static constexpr auto devices = fakes;

  double delta(std::uint64_t n) { return 1 / static_cast<double>(n); }
  std::uint64_t bytes(std::uint64_t n) { return sizeof(float) + (n + 7) / 8; }
  static void compress(std::span<const float> x, std::span<std::byte> message) {
    double sum = 0;
    for (const float v : x) sum += std::abs(v);
    std::fill(message.begin(), message.end(), std::byte{0});
    test::store(message, 0, static_cast<float>(sum / static_cast<double>(x.size())));
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] < 0) message[sizeof(float) + i / 8] |= std::byte{1} << i % 8;
  }
  static void decompress(std::span<const std::byte> message, std::span<float> y) {
    const auto scale = test::load<float>(message, 0);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = (message[sizeof(float) + i / 8] >> i % 8 & std::byte{1}) == std::byte{0} ? scale : -scale;
  }
  void compress(const rg_run& on, std::span<const float> x, std::span<std::byte> message) {
    enqueue(on, [=] { compress(x, message); });
  }
  void decompress(const rg_run& on, std::span<const std::byte> message, std::span<float> y) {
    enqueue(on, [=] { decompress(message, y); });
  }
};

// Takes the device's addresses for the host's.
struct touches : with_kernels<test::qsgd> {
  using with_kernels::compress;
  void compress(const rg_run&, std::span<const float> x, std::span<std::byte> message, std::uint64_t seed) {
    test::qsgd::compress(x, message, seed);
  }
};

// Has kernels for devices that this test does not have.
struct of_others : with_kernels<test::qsgd> {
  static constexpr std::array<std::string_view, 2> devices = {"hip", "sycl"};
};

} // namespace

RG_PLUGIN("device_compressors", "0.1.0", rg::compressor<qsgd>("qsgd", "QSGD, for tests"),
          rg::compressor<sign>("sign", "signs, for tests"),
          rg::compressor<random_block>("random_block", "can be added, for tests"),
          rg::compressor<test::top_k>("top_k", "without kernels, for tests"),
          rg::compressor<touches>("touches", "confuses addresses, for tests"),
          rg::compressor<of_others>("of_others", "for other devices, for tests"))
