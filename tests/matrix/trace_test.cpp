// SPDX-License-Identifier: Apache-2.0
//
// Spans that strategies record through the host's extension "regatta.trace/1".
#include "matrix.hpp"

#include <algorithm>
#include <string>

#include <regatta/ext/trace.h>
#include <regatta/plugin.hpp>

namespace regatta::test {
namespace {

// Offers the extension to the hosts of all ranks of a simulation and keeps the spans.
struct recorder {
  std::vector<rg_span> spans;
  std::uint32_t on = 1;
  rg_trace table = rg::make_versioned<rg_trace>();

  recorder() {
    table.context = this;
    table.on = &on;
    table.span = [](void* context, const rg_span* s) {
      static_cast<recorder*>(context)->spans.push_back(rg::copy_versioned(*s));
    };
  }
  plugin_host::extension_function extensions() {
    return [this](std::string_view id) -> const void* { return id == RG_EXT_TRACE ? &table : nullptr; };
  }
  std::size_t count(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::count_if(spans, [&](const rg_span& s) { return s.name == name; }));
  }
};

simulation_setup setup_of(const std::string& strategy, recorder& r) {
  simulation_setup s;
  s.strategy = strategy;
  s.workers = 1; // all spans are of one instance
  s.steps = 4;
  s.extensions = r.extensions();
  return s;
}

bool nest(const rg_span& a, const rg_span& b) {
  const auto holds = [](const rg_span& x, const rg_span& y) {
    return x.begin_ns <= y.begin_ns && y.end_ns <= x.end_ns;
  };
  return a.end_ns <= b.begin_ns || b.end_ns <= a.begin_ns || holds(a, b) || holds(b, a);
}

void expect_well_formed(const recorder& r, std::uint64_t end_ns) {
  for (const rg_span& s : r.spans) {
    CAPTURE(std::string(s.name));
    CHECK(s.begin_ns <= s.end_ns);
    CHECK(s.end_ns <= end_ns);
    for (const rg_span& o : r.spans) CHECK((s.track != o.track || nest(s, o)));
  }
}

} // namespace

TEST_CASE("the SDK records a span for each activity of a strategy, in virtual time") {
  recorder r;
  const auto result = simulate(plugins(), setup_of("allreduce", r));
  CHECK(r.count("end_step") == 4);
  expect_well_formed(r, result.virtual_ns);
}

TEST_CASE("dgc records the spans of encoding, exchange and decoding on its lanes' tracks") {
  recorder r;
  simulation_setup s = setup_of("dgc", r);
  s.parameters["dense_below"] = 50; // the tensor of 100 elements is compressed
  const auto result = simulate(plugins(), s);
  CHECK(r.count("encode") == 4);
  CHECK(r.count("decode") == 4);
  CHECK(std::ranges::any_of(r.spans, [](const rg_span& x) { return x.track >= 16 && x.end_ns > x.begin_ns; }));
  expect_well_formed(r, result.virtual_ns);
}

TEST_CASE("while recording is off no span is recorded") {
  recorder r;
  r.on = 0;
  simulate(plugins(), setup_of("dgc", r));
  CHECK(r.spans.empty());
}

} // namespace regatta::test
