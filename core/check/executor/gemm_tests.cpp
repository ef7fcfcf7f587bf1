// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a device (rg_device.gemm), called directly: the engine is not involved.
#include "check/harness/progress.hpp"
#include "check/harness/suite.hpp"
#include "registry/plugin_host.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <regatta/gemm.hpp>
#include <regatta/half.hpp>

#include <regatta/ext/device.h>

namespace regatta::conformance {
namespace {

// A device with one stream, and the memory that a test allocates.
class device_under_test {
public:
  explicit device_under_test(const component& executor) {
    const void* table = executor.extension ? executor.extension(RG_EXT_DEVICE) : nullptr;
    if (!table) throw skipped("it does not offer " RG_EXT_DEVICE);
    functions_ = rg::copy_versioned(*static_cast<const rg_device*>(table));
    if (!functions_.gemm) throw skipped("its device has no matrix products (rg_device.gemm)");
    const rg_status s = functions_.open(host_.c(), 0, 1, &self_);
    if (s == RG_E_UNSUPPORTED) throw skipped("this machine has no such device: " + host_.take_error());
    check(s, "open");
  }
  ~device_under_test() {
    if (self_) functions_.close(self_);
  }
  device_under_test(const device_under_test&) = delete;
  device_under_test& operator=(const device_under_test&) = delete;

  // Returns device memory with a copy of the bytes.
  void* copied(const std::vector<std::byte>& bytes) {
    void *there = nullptr, *here = nullptr;
    check(functions_.allocate(self_, bytes.size(), &there), "allocate");
    check(functions_.allocate_host(self_, bytes.size(), &here), "allocate_host");
    std::memcpy(here, bytes.data(), bytes.size());
    check(functions_.copy(self_, 0, there, here, bytes.size()), "copy");
    wait();
    functions_.release_host(self_, here);
    return there;
  }
  std::vector<std::byte> read(const void* there, std::size_t count) {
    void* here = nullptr;
    check(functions_.allocate_host(self_, count, &here), "allocate_host");
    check(functions_.copy(self_, 0, here, there, count), "copy");
    wait();
    const auto* first = static_cast<const std::byte*>(here);
    std::vector<std::byte> bytes(first, first + count);
    functions_.release_host(self_, here);
    return bytes;
  }
  void release(void* there) { functions_.release(self_, there); }
  rg_status gemm(const rg_gemm& what, const void* a, const void* b, void* c) {
    const rg_status s = functions_.gemm(self_, 0, &what, a, b, c);
    report_progress();
    return s;
  }
  std::string error() { return host_.take_error(); }

  void check(rg_status s, const char* function) {
    if (s < 0) throw failed(fmt::format("{}() of the device: status {}, \"{}\"", function, s, host_.take_error()));
  }

private:
  void wait() {
    rg_fence passed = 0;
    check(functions_.record(self_, 0, &passed), "record");
    check(functions_.wait(self_, passed), "wait");
    report_progress();
  }

  plugin_host host_;
  rg_device functions_{};
  void* self_ = nullptr;
};

// A stored matrix of elements from -1 to 1, which bf16 holds exactly, with `gap` elements behind each row.
struct matrix {
  matrix(std::uint64_t rows, std::uint64_t columns, std::uint64_t gap, std::uint32_t type, std::uint64_t seed)
      : stride(columns + gap), elements(rows * stride) {
    for (std::uint64_t i = 0; i < elements.size(); ++i)
      elements[i] = static_cast<float>((seed * 31 + i * i + i * 7) % 129) / 64.0F - 1.0F;
    bytes.resize(elements.size() * rg::size_of(type));
    for (std::uint64_t i = 0; i < elements.size(); ++i) {
      const std::uint16_t half = rg::to_bf16(elements[i]);
      if (type == RG_BF16)
        std::memcpy(bytes.data() + i * sizeof half, &half, sizeof half);
      else
        std::memcpy(bytes.data() + i * sizeof(float), &elements[i], sizeof(float));
    }
  }
  std::uint64_t stride;
  std::vector<float> elements;
  std::vector<std::byte> bytes;
};

std::string name_of(const rg_gemm& g) {
  return fmt::format(
      "c = {} * a{} * b{} + {} * c, of {} x {} x {} with a and b of type {}, and rows that are {}, {} and "
      "{} elements apart",
      g.alpha, g.flags & RG_GEMM_A ? " transposed" : "", g.flags & RG_GEMM_B ? " transposed" : "", g.beta, g.m, g.k,
      g.n, g.a_type, g.a_row, g.b_row, g.c_row);
}

// Returns false if the device refuses the product.
bool multiply(device_under_test& device, rg_gemm g) {
  const bool a_across = g.flags & RG_GEMM_A, b_across = g.flags & RG_GEMM_B;
  const matrix a(a_across ? g.k : g.m, a_across ? g.m : g.k, 3, g.a_type, 1);
  const matrix b(b_across ? g.n : g.k, b_across ? g.k : g.n, 1, g.b_type, 2);
  matrix c(g.m, g.n, 5, g.c_type, 3);
  // If beta is 0, c is not read.
  if (g.beta == 0)
    for (std::uint64_t i = 0; i < c.elements.size(); ++i)
      if (i % c.stride < g.n) {
        c.elements[i] = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(c.bytes.data() + i * sizeof(float), &c.elements[i], sizeof(float));
      }
  g.a_row = a.stride;
  g.b_row = b.stride;
  g.c_row = c.stride;
  void *x = device.copied(a.bytes), *y = device.copied(b.bytes), *z = device.copied(c.bytes);
  const rg_status s = device.gemm(g, x, y, z);
  if (s != RG_E_UNSUPPORTED) device.check(s, "gemm");
  const std::vector<std::byte> got = device.read(z, c.bytes.size());
  for (void* p : {x, y, z}) device.release(p);
  if (s == RG_E_UNSUPPORTED) return false;
  for (std::uint64_t i = 0; i < c.elements.size(); ++i) {
    float result = 0;
    std::memcpy(&result, got.data() + i * sizeof result, sizeof result);
    const std::uint64_t row = i / c.stride, column = i % c.stride;
    if (column >= g.n) {
      require(std::bit_cast<std::uint32_t>(result) == std::bit_cast<std::uint32_t>(c.elements[i]),
              name_of(g) + fmt::format(": writes behind row {} of c", row));
      continue;
    }
    double sum = 0, size = 0;
    for (std::uint64_t l = 0; l < g.k; ++l) {
      const double term = static_cast<double>(a.elements[a_across ? l * a.stride + row : row * a.stride + l]) *
                          static_cast<double>(b.elements[b_across ? column * b.stride + l : l * b.stride + column]);
      sum += term;
      size += std::abs(term);
    }
    const double before = g.beta == 0 ? 0 : g.beta * static_cast<double>(c.elements[i]);
    const double expected = g.alpha * sum + before;
    // fp32: two roundings for each term, in any order.
    const double bound = (2 * static_cast<double>(g.k) + 4) * 0x1p-24 * (std::abs(g.alpha) * size + std::abs(before));
    require(std::abs(static_cast<double>(result) - expected) <= bound,
            fmt::format("{}: element ({}, {}) is {}; expected {}", name_of(g), row, column, result, expected));
  }
  return true;
}

void products(const subject& s) {
  device_under_test device(*s.tested);
  bool any = false;
  std::string refusal;
  for (const std::uint32_t type : {RG_F32, RG_BF16})
    for (const std::uint32_t flags : {0, int{RG_GEMM_A}, int{RG_GEMM_B}, RG_GEMM_A | RG_GEMM_B})
      for (const auto& [m, n, k] : {std::tuple(1, 1, 1), {3, 5, 7}, {17, 9, 33}, {64, 48, 130}})
        for (const auto& [alpha, beta] : {std::pair(1.0, 0.0), {1.0, 1.0}, {-0.5, 0.25}, {2.0, -3.0}}) {
          rg_gemm g{};
          g.a_type = g.b_type = type;
          g.c_type = RG_F32;
          g.flags = flags;
          g.m = static_cast<std::uint64_t>(m);
          g.n = static_cast<std::uint64_t>(n);
          g.k = static_cast<std::uint64_t>(k);
          g.alpha = alpha;
          g.beta = beta;
          if (multiply(device, g))
            any = true;
          else if (refusal.empty())
            refusal = device.error();
        }
  if (!any) throw skipped("its device refuses all products: " + refusal);
  if (!refusal.empty()) remark("its device refuses some products: " + refusal);
}

} // namespace

std::vector<test> gemm_tests() {
  return {{"gemm",
           "rg_device.gemm is alpha * op(a) * op(b) + beta * c in fp32, with any row lengths, and writes c only",
           products}};
}

} // namespace regatta::conformance
