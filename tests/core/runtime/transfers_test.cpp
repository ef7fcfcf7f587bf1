// SPDX-License-Identifier: Apache-2.0
//
// The order in which the engine submits receives to a transport.
#include "runtime/transfers.hpp"

#include "base/failure.hpp"
#include "device/host.hpp"
#include "timeline/rank_trace.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

using namespace regatta;

namespace {

// A transport whose receives complete when the test says so: poll() reports those of `finished`, with the value of each
// written to the first float.
struct recording_transport {
  std::vector<rg_transfer> posted; // not yet complete
  std::vector<std::pair<std::uint32_t, float>> finished;
  std::int32_t error = 0; // with which all of them fail; 0: they succeed
  std::uint64_t time = 0; // when all of them ended; 0: unknown

  static recording_transport& of(void* self) { return *static_cast<recording_transport*>(self); }
  static rg_transport functions() {
    auto f = rg::make_versioned<rg_transport>();
    f.recv = [](void* self, const rg_transfer* t) {
      of(self).posted.push_back(*t);
      return rg_status{RG_OK};
    };
    f.poll = [](void* self, std::uint64_t, std::uint64_t, rg_completion* out, std::uint32_t, std::uint32_t* count) {
      auto& [posted, finished, error, time] = of(self);
      *count = 0;
      for (const auto& [peer, value] : finished) {
        const auto t = std::find_if(posted.begin(), posted.end(), [&](const auto& p) { return p.peer == peer; });
        REQUIRE(t != posted.end());
        std::memcpy(t->address, &value, sizeof value);
        out[*count] = {};
        out[*count].cookie = t->cookie;
        out[*count].vendor_error = error;
        out[*count].time_ns = time;
        if (error) out[*count].status = RG_E_PEER;
        out[(*count)++].bytes = t->bytes;
        posted.erase(t);
      }
      finished.clear();
      return rg_status{RG_OK};
    };
    return f;
  }
  std::vector<std::uint32_t> peers() const {
    std::vector<std::uint32_t> out;
    for (const rg_transfer& t : posted) out.push_back(t.peer);
    return out;
  }
};

struct fixture {
  explicit fixture(std::uint32_t flags) : caps(caps_with(flags)) {}
  static rg_transport_caps caps_with(std::uint32_t flags) {
    auto c = rg::make_versioned<rg_transport_caps>();
    c.flags = flags;
    c.memory = RG_MEMORY_HOST;
    c.p2p = RG_P2P_INDEPENDENT;
    return c;
  }
  rg_buffer part(std::uint64_t first, std::uint64_t count) const {
    rg_buffer b = whole;
    b.offset += first * sizeof(float);
    b.count = count;
    return b;
  }
  // Completes the receives from these peers, in this order, and returns the cookies that the engine reports.
  std::vector<std::uint64_t> finish(std::vector<std::pair<std::uint32_t, float>> receives) {
    transport.finished = std::move(receives);
    std::vector<rg_completion> completions;
    under_test.poll(0, 0, completions);
    std::vector<std::uint64_t> ended;
    for (const rg_completion& c : completions) ended.push_back(c.cookie);
    return ended;
  }

  using peers = std::vector<std::uint32_t>;
  using cookies = std::vector<std::uint64_t>;
  recording_transport transport;
  rg_transport functions = recording_transport::functions();
  rg_transport_caps caps;
  plugin_host host;
  host_processor processor;
  std::unique_ptr<staging> stage = stage_on_host(processor);
  region_table regions{nullptr, nullptr, false};
  rg_buffer whole = regions.allocate(RG_F32, 100, "the test's region");
  trace_recorder trace{100};
  transfers under_test{functions, &transport, caps, host, "transport", regions, *stage, nullptr, 0, 4, 1, &trace};
};

} // namespace

TEST_CASE("a receive that overlaps an outstanding one is held back until that one is complete") {
  fixture f(RG_CAP_ADD);
  f.under_test.recv(11, 1, 0, f.part(0, 50), false);
  f.under_test.recv(12, 2, 0, f.part(40, 50), true);
  f.under_test.recv(13, 3, 0, f.part(90, 10), false);
  CHECK(f.transport.peers() == fixture::peers{1, 3});
  CHECK(f.finish({{3, 0.0F}}) == fixture::cookies{13}); // a later one completes first
  CHECK(f.transport.peers() == fixture::peers{1});
  CHECK(f.finish({{1, 0.0F}}) == fixture::cookies{11});
  CHECK(f.transport.peers() == fixture::peers{2});
  CHECK(f.transport.posted[0].flags == RG_TRANSFER_ADD);
  CHECK(f.finish({{2, 0.0F}}) == fixture::cookies{12});
  CHECK(f.under_test.outstanding() == 0);
}

TEST_CASE("overlapping receives leave the bytes of the one that was posted last") {
  fixture f(0);
  for (const std::uint32_t peer : {3, 1, 2}) f.under_test.recv(peer, peer, 0, f.part(0, 10), false);
  while (f.under_test.outstanding() > 0) { // completes what came last first
    const std::uint32_t peer = f.transport.posted.back().peer;
    CHECK(f.finish({{peer, static_cast<float>(peer)}}) == fixture::cookies{peer});
  }
  CHECK(f.regions.elements<float>(f.whole)[0] == 2.0F);
}

TEST_CASE("a transport that orders receives gets them at once") {
  fixture f(RG_CAP_ORDERED_RECEIVES);
  for (const std::uint32_t peer : {3, 1, 2}) f.under_test.recv(peer, peer, 0, f.part(0, 10), false);
  CHECK(f.transport.peers() == fixture::peers{3, 1, 2});
  CHECK(f.finish({{2, 2.0F}, {3, 3.0F}, {1, 1.0F}}) == fixture::cookies{2, 3, 1});
}

TEST_CASE("the error of a transport's library is in the text of the run's end") {
  fixture f(0);
  f.under_test.recv(11, 1, 0, f.part(0, 50), false);
  f.transport.error = -42;
  f.finish({{1, 0.0F}});
  CHECK_THROWS_WITH_AS(f.under_test.require_success(), doctest::Contains("(error -42 of its library)"), failure);
}

TEST_CASE("in a trace a message ends when the transport says so, if that is possible") {
  fixture f(RG_CAP_ADD);
  f.trace.record(true);
  std::vector<std::uint64_t> said;
  const auto receive = [&](auto time) {
    f.under_test.recv(11, 1, 0, f.part(0, 50), false);
    said.push_back(f.transport.time = time(rg::now_ns()));
    CHECK(f.finish({{1, 0.0F}}) == fixture::cookies{11});
  };
  receive([](std::uint64_t now) { return now; });
  receive([](std::uint64_t) { return 0; });                           // unknown
  receive([](std::uint64_t) { return 1; });                           // before it began
  receive([](std::uint64_t now) { return now + 3'600'000'000'000; }); // later than poll()
  const std::uint64_t end = rg::now_ns();
  const rank_trace t = rank_trace_from(f.trace.take(0, ""));
  REQUIRE(t.events.size() == 4);
  CHECK(t.events[0].end == said[0]);
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(t.events[i].end > t.events[i].begin);
    CHECK(t.events[i].end <= end);
    CHECK(t.events[i].end != said[i]);
  }
}
