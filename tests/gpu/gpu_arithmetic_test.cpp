// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of regatta.device/1 on the emulated GPU (emulated/streams.hpp) or a real one, against the host's:
// bit-identical except for the order of sums. Also the order of streams.
#include "memory/arithmetic.hpp"
#include "memory/conversion.hpp"
#include "memory/selection.hpp"
#include "optimizer/kernels.hpp"

#include <executed.hpp>

#include <doctest/doctest.h>
#include <regatta/gemm.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

using namespace regatta;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN();

// The real executor on a machine with a GPU, set by tests/gpu/run-all.sh.
const char* const on_gpu = std::getenv("REGATTA_EXECUTOR_PLUGIN");

// A device with three streams; any error fails the test.
class opened {
public:
  opened() {
    const auto& c = reference::load_component(on_gpu ? on_gpu : REGATTA_EXECUTOR, RG_KIND_EXECUTOR, "cudnn");
    functions_ = static_cast<const rg_device*>(c.extension(RG_EXT_DEVICE));
    REQUIRE(functions_);
    host_.struct_size = sizeof host_;
    host_.context = this;
    host_.fail = [](void* context, rg_status s, const char* text) {
      static_cast<opened*>(context)->error = text;
      return s;
    };
    check(functions_->open(&host_, 0, 3, &self_));
  }
  ~opened() { functions_->close(self_); }
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;

  void check(rg_status s) const {
    CAPTURE(error);
    REQUIRE(s == RG_OK);
  }
  template <class T> T* make(std::size_t n, bool pinned = false) {
    void* p = nullptr;
    check((pinned ? functions_->allocate_host : functions_->allocate)(self_, n * sizeof(T) + 1, &p));
    return static_cast<T*>(p);
  }
  // Copies v to memory that starts `ahead` elements after an address of allocate().
  template <class T> T* make(const std::vector<T>& v, std::size_t ahead = 0) {
    T* p = make<T>(v.size() + ahead) + ahead;
    copy(0, p, v.data(), v.size() * sizeof(T));
    settle(0);
    return p;
  }
  void copy(std::uint32_t stream, void* to, const void* from, std::size_t bytes) {
    check(functions_->copy(self_, stream, to, from, bytes));
  }
  rg_work work(rg_op_kind kind) const {
    auto w = rg::make_versioned<rg_work>();
    w.kind = kind;
    w.type = w.source_type = RG_F32;
    return w;
  }
  void run(const rg_work& w, std::uint32_t stream = 0) { check(functions_->work(self_, stream, &w)); }
  rg_fence record(std::uint32_t stream) {
    rg_fence f = 0;
    check(functions_->record(self_, stream, &f));
    return f;
  }
  void wait_for(std::uint32_t stream, rg_fence f) { check(functions_->wait_for(self_, stream, f)); }
  void wait(rg_fence f) { check(functions_->wait(self_, f)); }
  void settle(std::uint32_t stream) { wait(record(stream)); }
  template <class T> std::vector<T> read(const T* p, std::size_t n) {
    for (std::uint32_t s = 0; s < 3; ++s) settle(s);
    std::vector<T> v(n);
    copy(0, v.data(), p, n * sizeof(T));
    settle(0);
    return v;
  }
  const rg_device& functions() const { return *functions_; }
  void* self() const { return self_; }
  std::string error;

private:
  rg_host host_{};
  const rg_device* functions_ = nullptr;
  void* self_ = nullptr;
};

std::vector<float> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = rg::random_normals(seed, i / 4)[i % 4];
  return v;
}

// Bit-identical, except that all NaNs are equal.
void check_same(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    wrong += std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]));
  CHECK(wrong == 0);
}

constexpr std::size_t sizes[] = {1, 7, 64, 1000, 70001};

} // namespace

TEST_CASE("a GEMM has the host's results but for the order of sums, however the matrices are stored") {
  opened d;
  REQUIRE(bool(d.functions().gemm));
  for (const std::uint32_t flags : {0U, 1U, 2U, 3U})
    for (const double beta : {0.0, -0.5}) {
      CAPTURE(flags);
      CAPTURE(beta);
      rg_gemm g{.a_type = RG_F32, .b_type = RG_F32, .c_type = RG_F32, .flags = flags, .m = 5, .n = 33, .k = 70};
      g.alpha = 0.5;
      g.beta = beta;
      g.a_row = (flags & RG_GEMM_A ? g.m : g.k) + 2; // gaps between rows
      g.b_row = (flags & RG_GEMM_B ? g.k : g.n) + 1;
      g.c_row = g.n + 3;
      const auto a = numbers(100 * 75, 1), b = numbers(100 * 75, 2);
      auto c = numbers(5 * g.c_row, 3);
      REQUIRE(rg::fits(g, a.size(), b.size(), c.size()));
      float *const da = d.make(a, 1), *const db = d.make(b), *const dc = d.make(c, 3);
      d.check(d.functions().gemm(d.self(), 0, &g, da, db, dc));
      rg::gemm(g, a.data(), b.data(), c.data());
      const auto found = d.read(dc, c.size());
      // Sums of 70 products of numbers around 1: each rounding is at most 2^-24 of a partial sum, which is below 100.
      for (std::size_t i = 0; i < c.size(); ++i) REQUIRE(std::abs(found[i] - c[i]) < 1e-3F);

      // The same product of bf16 numbers, summed in fp32.
      g.a_type = g.b_type = RG_BF16;
      const auto narrow = [](const std::vector<float>& x) {
        std::vector<std::uint16_t> y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          y[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x[i]) >> 16);
        return y;
      };
      const auto a16 = narrow(a), b16 = narrow(b);
      d.check(d.functions().gemm(d.self(), 0, &g, d.make(a16), d.make(b16), dc));
      rg::gemm(g, reinterpret_cast<const rg::bf16*>(a16.data()), reinterpret_cast<const rg::bf16*>(b16.data()),
               c.data());
      const auto found16 = d.read(dc, c.size());
      for (std::size_t i = 0; i < c.size(); ++i) REQUIRE(std::abs(found16[i] - c[i]) < 2e-3F);
    }
  auto wrong = rg_gemm{.a_type = RG_BF16, .b_type = RG_F32, .c_type = RG_F32, .m = 1, .n = 1, .k = 1};
  wrong.a_row = wrong.b_row = wrong.c_row = 1;
  float* const one = d.make<float>(1);
  CHECK(d.functions().gemm(d.self(), 0, &wrong, one, one, one) == RG_E_UNSUPPORTED);
  wrong.a_type = RG_F32;
  wrong.m = std::uint64_t{1} << 31;
  CHECK(d.functions().gemm(d.self(), 0, &wrong, one, one, one) == RG_E_UNSUPPORTED);
}

TEST_CASE("a stream has a handle, by which others enqueue work") {
  opened d;
  void *a = nullptr, *b = nullptr;
  d.check(d.functions().handle(d.self(), 0, &a));
  d.check(d.functions().handle(d.self(), 1, &b));
  CHECK(a);
  CHECK(a != b);
}

TEST_CASE("a device fills, adds and scales with the host's results") {
  opened d;
  for (const std::size_t n : sizes) {
    CAPTURE(n);
    auto y = numbers(n, 1), x = numbers(n, 2), v = numbers(n, 3);
    float *dy = d.make(y, n % 3), *dx = d.make(x), *dv = d.make(v); // not always a multiple of 16 bytes
    auto w = d.work(RG_OP_AXPY);
    w.target = dy;
    w.source = dx;
    w.count = n;
    w.factor = 0.3;
    d.run(w);
    arithmetic::axpy(y, 0.3F, x);
    w.kind = RG_OP_SCALE;
    w.factor = -1.7;
    d.run(w);
    arithmetic::scale(y, -1.7F);
    check_same(d.read(dy, n), y);
    w.kind = RG_OP_ACCUMULATE;
    w.factor = 0.9;
    w.sum = dv;
    d.run(w);
    arithmetic::accumulate(y, 0.9F, x, v);
    check_same(d.read(dy, n), y);
    check_same(d.read(dv, n), v);

    std::vector<std::int32_t> places;
    for (std::size_t i = 0; i < n; i += 3) places.push_back(static_cast<std::int32_t>(i));
    auto* dp = d.make(places);
    auto at = d.work(RG_OP_AXPY);
    at.target = dy;
    at.source = dx;
    at.index = dp;
    at.count = n;
    at.index_count = places.size();
    at.factor = at.value = 2;
    d.run(at);
    selection::axpy_at(y, places, 2, std::span(x).first(places.size()));
    at.kind = RG_OP_FILL;
    at.index_count = (places.size() + 1) / 2;
    d.run(at);
    selection::fill_at(y, std::span(places).first(at.index_count), 2);
    check_same(d.read(dy, n), y);
    w = d.work(RG_OP_FILL);
    w.target = dy;
    w.count = n;
    w.value = 5;
    d.run(w);
    check_same(d.read(dy, n), std::vector<float>(n, 5));

    std::vector<double> a(x.begin(), x.end()), b(v.begin(), v.end());
    double *da = d.make(a), *db = d.make(b);
    auto sum = d.work(RG_OP_AXPY);
    sum.type = sum.source_type = RG_F64;
    sum.target = da;
    sum.source = db;
    sum.count = n;
    sum.factor = 1;
    d.run(sum);
    std::ranges::transform(a, b, a.begin(), std::plus<>());
    CHECK(d.read(da, n) == a);
  }
}

TEST_CASE("an indexed fill skips indices outside the target") {
  opened d;
  float* y = d.make(numbers(4, 1));
  const auto before = d.read(y, 4);
  auto* places = d.make(std::vector<std::int32_t>{-1, 4, 2});
  auto w = d.work(RG_OP_FILL);
  w.target = y;
  w.count = 4;
  w.index = places;
  w.index_count = 3;
  w.value = 9;
  d.run(w);
  check_same(d.read(y, 4), {before[0], before[1], 9, before[3]});
}

TEST_CASE("conversions between types have the host's results") {
  opened d;
  for (const auto& [type, half] : {std::pair{RG_F16, conversion::half::fp16}, {RG_BF16, conversion::half::bf16}}) {
    auto x = numbers(1000, 4);
    x[0] = infinite;
    x[1] = not_a_number;
    x[2] = 1e30F;
    x[3] = 6.1e-8F; // a subnormal of fp16
    x[4] = -0.0F;
    const std::size_t n = x.size();
    std::vector<std::uint16_t> narrow(n);
    conversion::narrow(half, narrow, x);
    float* dx = d.make(x);
    auto* dn = d.make<std::uint16_t>(n, true); // as in the engine
    auto w = d.work(RG_OP_CONVERT);
    w.target = dn;
    w.type = type;
    w.source = dx;
    w.count = n;
    d.run(w, 1);
    auto bits = d.read(dn, n);
    bits[1] = narrow[1]; // a NaN has many representations
    CHECK(bits == narrow);

    std::vector<float> wide = numbers(n, 5);
    float* dwide = d.make(wide);
    w = d.work(RG_OP_CONVERT);
    w.target = dwide;
    w.source = dn;
    w.source_type = type;
    w.flags = RG_OP_ADD;
    w.count = n;
    d.run(w, 2);
    conversion::add(half, wide, narrow);
    check_same(d.read(dwide, n), wide);
    w.flags = 0;
    d.run(w, 2);
    conversion::widen(half, wide, narrow);
    check_same(d.read(dwide, n), wide);

    w = d.work(RG_OP_CONVERT);
    w.target = dx;
    w.source = dx;
    w.round_to = type;
    w.count = n;
    d.run(w);
    conversion::round(half, x);
    check_same(d.read(dx, n), x);
    w.target = dwide;
    w.flags = RG_OP_ADD; // a server's own push, rounded as those that cross the wire
    d.run(w);
    for (std::size_t i = 0; i < n; ++i) wide[i] += x[i];
    check_same(d.read(dwide, n), wide);
  }
}

TEST_CASE("norms count elements that are not finite, and clipping leaves these as they are") {
  opened d;
  for (const std::size_t n : sizes) {
    auto x = numbers(n, 6);
    double* out = d.make<double>(2);
    float* dx = d.make(x);
    auto w = d.work(RG_OP_NORM);
    w.target = out;
    w.source = dx;
    w.count = n;
    d.run(w);
    w.flags = RG_OP_ADD;
    d.run(w);
    const auto expected = arithmetic::sum_of_squares(x);
    auto got = d.read(out, 2);
    CHECK(got[0] == 0);
    CHECK(got[1] == doctest::Approx(2 * expected.sum_of_squares).epsilon(1e-12));

    auto clip = d.work(RG_OP_CLIP);
    clip.target = dx;
    clip.count = n;
    clip.max_norm = 0.5;
    d.run(clip);
    double square = 0;
    for (const float v : d.read(dx, n)) square += static_cast<double>(v) * static_cast<double>(v);
    CHECK(std::sqrt(square) == doctest::Approx(std::min(0.5, std::sqrt(expected.sum_of_squares))).epsilon(1e-5));

    x[n / 2] = not_a_number;
    x[0] = n > 1 ? -infinite : not_a_number;
    dx = d.make(x);
    clip.target = dx;
    d.run(clip);
    check_same(d.read(dx, n), x);
    w.flags = 0;
    w.source = dx;
    d.run(w);
    got = d.read(out, 2);
    CHECK(got[0] == (n > 1 ? 2 : 1));
    CHECK(std::isfinite(got[1]));
  }
}

TEST_CASE("the largest elements are those that the host finds, with equal elements, too") {
  opened d;
  for (const std::size_t n : sizes)
    for (const int kinds : {0, 3, 1}) { // distinct values: all, few, one
      auto x = numbers(n, 7);
      if (kinds)
        for (float& v : x) v = std::round(v * static_cast<float>(kinds - 1));
      if (kinds != 1 && n > 10) {
        x[n / 3] = not_a_number;
        x[n / 2] = -infinite;
      }
      float* dx = d.make(x);
      for (const std::size_t k : {std::size_t{1}, n / 5 + 1, n}) {
        CAPTURE(n);
        CAPTURE(kinds);
        CAPTURE(k);
        std::vector<std::int32_t> places(k);
        std::vector<float> values(k);
        selection::scratch scratch;
        selection::top_k(x, places, values, scratch);
        auto* dplaces = d.make<std::int32_t>(k);
        float* dvalues = d.make<float>(k);
        auto w = d.work(RG_OP_TOP_K);
        w.source = dx;
        w.count = n;
        w.index = dplaces;
        w.target = dvalues;
        w.index_count = k;
        d.run(w);
        CHECK(d.read(dplaces, k) == places);
        check_same(d.read(dvalues, k), values);

        const float threshold = 0.8F;
        std::vector<std::int32_t> above(n);
        std::vector<float> their(n);
        const std::size_t all = selection::above(x, threshold, above, their).value();
        auto* found = d.make<std::uint64_t>(1, true);
        w.kind = RG_OP_SELECT;
        w.threshold = static_cast<double>(threshold);
        w.found = found;
        d.run(w);
        CHECK(d.read(found, 1)[0] == all);
        const std::size_t fit = std::min(all, k);
        above.resize(fit);
        CHECK(d.read(dplaces, fit) == above);
      }
    }
}

TEST_CASE("every optimizer's update has the host's results") {
  opened d;
  const std::size_t n = 1003;
  for (const std::uint32_t rule : {RG_SGD, RG_MOMENTUM, RG_NESTEROV, RG_ADAGRAD, RG_ADAM})
    for (const std::size_t ahead : {0, 1}) {
      CAPTURE(rule);
      CAPTURE(ahead);
      auto w = numbers(n, 8), g = numbers(n, 9), a = numbers(n, 10), b = numbers(n, 11);
      for (float& v : a) v = rule == RG_ADAGRAD ? std::abs(v) : v;
      for (float& v : b) v = std::abs(v);
      auto u = rg::make_versioned<rg_update>();
      u.rule = rule;
      u.factor = 0.7F;
      u.decay = 1e-3F;
      u.lr = 0.02F;
      u.first = 0.9F;
      u.second = 0.99F;
      u.epsilon = 1e-6F;
      u.one_minus_first = 0.1F;
      u.one_minus_second = 0.01F;
      float *dw = d.make(w), *dg = d.make(g, ahead);
      u.a = d.make(a);
      u.b = d.make(b);
      auto work = d.work(RG_OP_APPLY);
      work.target = dw;
      work.source = dg;
      work.count = n;
      work.update = &u;
      optimizer_kernels::coefficients c = u;
      c.a = a.data();
      c.b = b.data();
      for (int i = 0; i < 3; ++i) {
        d.run(work);
        optimizer_kernels::update(c, w.data(), g.data(), n);
      }
      check_same(d.read(dw, n), w);
      if (rule != RG_SGD) check_same(d.read(u.a, n), a);
    }
}

TEST_CASE("rows are gathered and scattered") {
  opened d;
  const std::size_t row = 5, rows = 9;
  const auto table = numbers(row * rows, 12);
  float* dt = d.make(table);
  auto* index = d.make(std::vector<std::int64_t>{7, 0, 3});
  float* out = d.make<float>(3 * row);
  auto w = d.work(RG_OP_GATHER_ROWS);
  w.target = out;
  w.source = dt;
  w.index = index;
  w.index_count = 3;
  w.row = row;
  w.count = table.size();
  d.run(w);
  auto got = d.read(out, 3 * row);
  for (std::size_t i = 0; i < row; ++i) {
    CHECK(got[i] == table[7 * row + i]);
    CHECK(got[row + i] == table[i]);
  }
  w.kind = RG_OP_SCATTER_ROWS;
  w.flags = RG_OP_ADD;
  w.target = dt;
  w.source = out;
  d.run(w);
  got = d.read(dt, table.size());
  for (std::size_t i = 0; i < row; ++i) {
    CHECK(got[3 * row + i] == 2 * table[3 * row + i]);
    CHECK(got[4 * row + i] == table[4 * row + i]);
  }
}

TEST_CASE("streams are ordered by fences alone, and tell when they are done") {
  opened d;
  const std::size_t n = 100;
  float* x = d.make(std::vector<float>(n, 1));
  float* host = d.make<float>(n, true);
  auto w = d.work(RG_OP_SCALE);
  w.target = x;
  w.count = n;
  w.factor = 3;
  d.run(w, 0);
  const rg_fence scaled = d.record(0);
  d.wait_for(1, scaled);
  d.copy(1, host, x, n * sizeof(float));
  const rg_fence copied = d.record(1);
  if (!on_gpu) CHECK(d.functions().passed(d.self(), copied) == RG_AGAIN); // a real GPU may be done already
  static std::atomic<bool> told = false; // static: the callback may still use it when the test ends
  d.check(d.functions().notify(
      d.self(), 1,
      [](void* context) {
        auto& t = *static_cast<std::atomic<bool>*>(context);
        t = true;
        t.notify_one();
      },
      &told));
  told.wait(false);
  CHECK(d.functions().passed(d.self(), copied) == RG_OK);
  CHECK(d.functions().passed(d.self(), scaled) == RG_OK);
  CHECK(host[n - 1] == 3);
}

TEST_CASE("a device refuses an unknown kind of work and a GPU that is not there, by name") {
  opened d;
  auto w = d.work(RG_OP_SEND);
  CHECK(d.functions().work(d.self(), 0, &w) == RG_E_UNSUPPORTED);
  CHECK(d.error.find("kind 257") != std::string::npos);
  void* self = nullptr;
  rg_host host{};
  host.struct_size = sizeof host;
  host.context = &d;
  host.fail = [](void* context, rg_status s, const char* text) {
    static_cast<opened*>(context)->error = text;
    return s;
  };
  CHECK(d.functions().open(&host, 700, 1, &self) == RG_E_UNSUPPORTED);
  CHECK(d.error.starts_with("there is no GPU 700, only "));
}
