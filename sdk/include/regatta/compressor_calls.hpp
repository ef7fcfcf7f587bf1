// SPDX-License-Identifier: Apache-2.0
//
// The calls of the functions of a compressor's class, in host memory and on devices, and the checks of their forms.
// regatta/compressor.hpp has the contract of the class.
#pragma once

#include <regatta/abi/operations.h>
#include <regatta/ext/compressor.h>
#include <regatta/members.hpp>
#include <regatta/plugin.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rg {

// The promise of class C about its messages. ext/compressor.h defines each, and `regatta check` tests it.
enum class compression : std::uint32_t {
  unbiased = RG_COMPRESSION_UNBIASED,
  contraction = RG_COMPRESSION_CONTRACTS,
  needs_feedback = RG_COMPRESSION_NEEDS_FEEDBACK
};

RG_MEMBER_NAME(delta)
RG_MEMBER_NAME(residual)

namespace detail {

using message_view = std::span<const std::byte>;
using message_span = std::span<std::byte>;

// Calls the functions of C, and replaces those that C leaves out.
template <class C> class compressor_calls {
public:
  static constexpr bool names_devices = requires { std::begin(C::devices); };
  static constexpr bool seeded_on_device = requires(C c, const rg_run& on, std::span<const float> x, message_span m) {
    { c.compress(on, x, m, std::uint64_t{}) } -> std::same_as<void>;
  };
  static constexpr bool unseeded_on_device = requires(C c, const rg_run& on, std::span<const float> x, message_span m) {
    { c.compress(on, x, m) } -> std::same_as<void>;
  };
  static constexpr bool compresses_on_device = seeded_on_device || unseeded_on_device;
  static constexpr bool decompresses_on_device = requires(C c, const rg_run& on, message_view m, std::span<float> y) {
    { c.decompress(on, m, y) } -> std::same_as<void>;
  };
  static constexpr bool adds_on_device = requires(C c, const rg_run& on, message_span sum, message_view m) {
    { c.add(on, sum, m, std::uint64_t{}) } -> std::same_as<void>;
  };
  static constexpr bool seeded = requires(C c, std::span<const float> x, message_span m) {
    { c.compress(x, m, std::uint64_t{}) } -> std::same_as<void>;
  };
  static constexpr bool unseeded = requires(C c, std::span<const float> x, message_span m) {
    { c.compress(x, m) } -> std::same_as<void>;
  };
  static constexpr bool contracts = requires(C c) {
    { c.delta(std::uint64_t{}) } -> std::same_as<double>;
  };
  static constexpr bool has_residual = requires(C c, message_view m, std::span<float> p) {
    { c.residual(m, p) } -> std::same_as<void>;
  };
  static constexpr bool adds = requires(C c, message_span sum, message_view m) {
    { c.add(sum, m, std::uint64_t{}) } -> std::same_as<void>;
  };
  static_assert(
      requires {
        { C::promise } -> std::convertible_to<compression>;
      },
      "a compressor needs: static constexpr auto promise = rg::compression::unbiased, contraction or needs_feedback");
  static_assert(std::is_constructible_v<C, const parameters_t<C>&> || std::is_default_constructible_v<C>,
                "a compressor needs a constructor: (const parameters&), or () without parameters");
  static_assert(
      requires(C c) {
        { c.bytes(std::uint64_t{}) } -> std::same_as<std::uint64_t>;
      },
      "a compressor needs: std::uint64_t bytes(std::uint64_t n)");
  static_assert(seeded || unseeded, "a compressor needs: void compress(std::span<const float> x, std::span<std::byte> "
                                    "message), or with std::uint64_t seed as third argument");
  static_assert(
      requires(C c, message_view m, std::span<float> y) {
        { c.decompress(m, y) } -> std::same_as<void>;
      },
      "a compressor needs: void decompress(std::span<const std::byte> message, std::span<float> y)");
  static_assert(C::promise != compression::contraction || contracts,
                "compression::contraction needs: double delta(std::uint64_t n)");
  static_assert(!names_devices || (compresses_on_device && decompresses_on_device && adds_on_device == adds),
                "a compressor with devices needs: void compress(const rg_run& on, std::span<const float> x, "
                "std::span<std::byte> message), or with std::uint64_t seed as fourth argument; void decompress(const "
                "rg_run& on, std::span<const std::byte> message, std::span<float> y); and beside add() void add(const "
                "rg_run& on, std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n)");
  static_assert(names_devices || !(compresses_on_device || decompresses_on_device || adds_on_device),
                "a compressor with functions for devices needs the kinds for which they have kernels: static constexpr "
                "std::array<std::string_view, 1> devices = {\"cuda\"}");
  RG_OPTIONAL_MEMBER(C, delta, contracts, "double delta(std::uint64_t n)");
  RG_OPTIONAL_MEMBER(C, residual, has_residual,
                     "void residual(std::span<const std::byte> message, std::span<float> p)");
  RG_OPTIONAL_MEMBER(C, add, adds,
                     "void add(std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n)");

  explicit compressor_calls(const parameters_t<C>& p) : c_(make(p)) {}

  std::uint64_t bytes(std::uint64_t n) { return c_.bytes(n); }
  double delta(std::uint64_t n) {
    if constexpr (contracts) return c_.delta(n);
    return 0;
  }
  void compress(std::span<const float> x, message_span message, std::uint64_t seed) {
    if constexpr (seeded)
      c_.compress(x, message, seed);
    else
      c_.compress(x, message);
  }
  void decompress(message_view message, std::span<float> y) { c_.decompress(message, y); }

  // Returns whether C has kernels for this kind of device.
  static bool runs_on([[maybe_unused]] std::string_view device) {
    if constexpr (names_devices) return std::ranges::find(C::devices, device) != std::end(C::devices);
    return false;
  }
  // Returns the kinds of device in quotes, for texts of errors: "cuda", "hip". Empty without C::devices.
  static std::string devices() {
    std::string all;
    if constexpr (names_devices)
      for (const std::string_view d : C::devices) all.append(all.empty() ? "\"" : ", \"").append(d).append("\"");
    return all;
  }
  // These three enqueue kernels in on.stream; spans are of the device's addresses. Only where runs_on().
  void compress(const rg_run& on, std::span<const float> x, message_span message, std::uint64_t seed) {
    if constexpr (seeded_on_device)
      c_.compress(on, x, message, seed);
    else if constexpr (unseeded_on_device)
      c_.compress(on, x, message);
  }
  void decompress(const rg_run& on, message_view message, std::span<float> y) {
    if constexpr (decompresses_on_device) c_.decompress(on, message, y);
  }
  void add(const rg_run& on, message_span sum, message_view message, std::uint64_t n) {
    if constexpr (adds_on_device) c_.add(on, sum, message, n);
  }
  // Adds D(message) to y.
  void accumulate(message_view message, std::span<float> y) {
    const std::span<float> part = scratch(y.size());
    c_.decompress(message, part);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += part[i];
  }
  // p -= D(message)
  void residual(message_view message, std::span<float> p) {
    if constexpr (has_residual) {
      c_.residual(message, p);
    } else {
      const std::span<float> sent = scratch(p.size());
      c_.decompress(message, sent);
      for (std::size_t i = 0; i < p.size(); ++i) p[i] -= sent[i];
    }
  }
  void add(message_span sum, message_view message, std::uint64_t n) {
    if constexpr (adds) c_.add(sum, message, n);
  }

private:
  static C make(const parameters_t<C>& p) {
    if constexpr (std::is_constructible_v<C, const parameters_t<C>&>)
      return C(p);
    else
      return C();
  }
  std::span<float> scratch(std::size_t n) {
    if (scratch_.size() < n) scratch_.resize(n);
    return {scratch_.data(), n};
  }

  C c_;
  std::vector<float> scratch_;
};

} // namespace detail
} // namespace rg
