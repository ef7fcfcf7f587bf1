// SPDX-License-Identifier: Apache-2.0
//
// regatta.exchange/1: the bytes that all_gather() delivers, and the calls that are refused.
#include "launch/all_gather.hpp"
#include "runtime/connected_transport.hpp"

#include "base/failure.hpp"

#include <doctest/doctest.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

using namespace regatta;

namespace {

using bytes = connected_transport::bytes;

constexpr std::uint32_t ranks = 3;

// The coordinator's part, for ranks that are threads.
class meeting {
public:
  std::vector<bytes> exchange(std::uint32_t rank, const bytes& mine, std::span<const std::uint32_t> members) {
    std::unique_lock lock(mutex_);
    std::vector<std::uint32_t> all(members.begin(), members.end());
    if (all.empty()) {
      all.resize(ranks);
      std::iota(all.begin(), all.end(), 0u);
    }
    if (auto parts = gather_.add(rank, "transport", mine, all))
      for (const std::uint32_t r : all) parts_[r] = parts;
    changed_.notify_all();
    changed_.wait(lock, [&] { return parts_[rank] || ended_; });
    if (!parts_[rank]) throw failure(exit_code::run, "rank 2 died");
    return *std::exchange(parts_[rank], std::nullopt);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  all_gather gather_{ranks};
  std::array<std::optional<std::vector<bytes>>, ranks> parts_;
  bool ended_ = false;
};

// One rank's instance of the test's transport.
struct rank_transport {
  rank_transport(std::uint32_t r, meeting& m)
      : rank(r), transport(plugins, {"exchanging", {}}, {}, {},
                           [&m, r](const bytes& mine, std::span<const std::uint32_t> members) {
                             return m.exchange(r, mine, members);
                           }) {
    transport.create();
    cluster.rank = rank;
    cluster.size = ranks;
    cluster.host_of = hosts.data();
  }
  void connect() {
    transport.connect(cluster, 1, {}, {{"127.0.0.1"}, {"10.0.0.1", "10.1.0.1"}});
    table = static_cast<const rg_exchange*>(transport.extension("test.exchange/1"));
    REQUIRE(table);
  }
  rg_status gather(const std::vector<std::uint32_t>& members, const std::string& mine, std::vector<std::string>& out) {
    const rg_blob blob{mine.data(), mine.size()};
    std::vector<rg_blob> parts(members.size() + 1);
    const rg_status s = table->all_gather(table->context, members.data(), static_cast<std::uint32_t>(members.size()),
                                          &blob, parts.data());
    out.clear();
    for (std::size_t k = 0; s == RG_OK && k < members.size(); ++k)
      out.emplace_back(static_cast<const char*>(parts[k].data), parts[k].bytes);
    return s;
  }
  std::string error() { return transport.instance().host->take_error(); }

  static inline const registry plugins = registry::of_files({EXCHANGING});
  std::uint32_t rank;
  std::array<std::uint32_t, ranks> hosts{0, 1, 0};
  rg_cluster cluster = rg::make_versioned<rg_cluster>();
  connected_transport transport;
  const rg_exchange* table = nullptr;
};

// Runs the body on each rank, in a thread each. doctest's assertions are safe there.
template <class F> void on_all_ranks(const F& body) {
  meeting m;
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      rank_transport t(r, m);
      t.connect();
      body(t, m);
    });
  for (std::thread& t : threads) t.join();
}

} // namespace

TEST_CASE("a transport knows the addresses of every rank's host, and listens at those of its own") {
  on_all_ranks([](rank_transport& t, meeting&) {
    const auto* world = static_cast<const rg_world*>(t.transport.extension("test.world/1"));
    REQUIRE(world);
    const std::array<std::vector<std::string>, 2> of_host{{{"127.0.0.1"}, {"10.0.0.1", "10.1.0.1"}}};
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const rg_addresses& a = rg::at_stride(world->addresses_of, r);
      CHECK(std::vector<std::string>(a.texts, a.texts + a.count) == of_host[t.hosts[r]]);
    }
    CHECK(std::vector<std::string>(world->addresses, world->addresses + world->address_count) ==
          of_host[t.hosts[t.rank]]);
  });
}

TEST_CASE("the parts of a group's members arrive in the order of the members, in the run and in a part of it") {
  on_all_ranks([](rank_transport& t, meeting&) {
    std::vector<std::string> parts;
    REQUIRE(t.gather({0, 1, 2}, std::string(t.rank, 'x') + "of " + std::to_string(t.rank), parts) == RG_OK);
    CHECK(parts == std::vector<std::string>{"of 0", "xof 1", "xxof 2"});
    if (t.rank != 1) {
      REQUIRE(t.gather({0, 2}, std::to_string(t.rank), parts) == RG_OK);
      CHECK(parts == std::vector<std::string>{"0", "2"});
    }
    REQUIRE(t.gather({0, 1, 2}, "", parts) == RG_OK); // a barrier
    CHECK(parts == std::vector<std::string>(3));
    const std::string most(4096, static_cast<char>('0' + t.rank));
    REQUIRE(t.gather({0, 1, 2}, most, parts) == RG_OK);
    CHECK(parts[t.rank] == most);
    REQUIRE(t.gather({t.rank}, "alone", parts) == RG_OK);
    CHECK(parts == std::vector<std::string>{"alone"});
  });
}

TEST_CASE("wrong members and too many bytes are refused with a text, without a call at the other ranks") {
  on_all_ranks([](rank_transport& t, meeting&) {
    const std::uint32_t me = t.rank, other = (me + 1) % ranks;
    const std::vector<std::vector<std::uint32_t>> wrong = {
        {},                                         // an empty group
        {other},                                    // without this rank
        {std::max(me, other), std::min(me, other)}, // descending
        {me, me},                                   // twice
        {0, 1, 2, 3},                               // a rank that does not exist
        {me, UINT32_MAX},
    };
    std::vector<std::string> parts;
    for (const auto& members : wrong) {
      CAPTURE(members.size());
      CHECK(t.gather(members, "x", parts) == RG_E_OPERATION);
      CHECK(t.error().find("expected ranks in ascending order, this one among them") != std::string::npos);
    }
    CHECK(t.gather({0, 1, 2}, std::string(4097, 'x'), parts) == RG_E_OPERATION);
    CHECK(t.error().find("expected at most 4096 bytes, got 4097") != std::string::npos);
    REQUIRE(t.gather({0, 1, 2}, "later", parts) == RG_OK); // a refused call takes no part
    CHECK(parts == std::vector<std::string>(3, "later"));
  });
}

TEST_CASE("calls within create(), caps() and listen() are refused") {
  on_all_ranks([](rank_transport& t, meeting&) {
    const auto* early = static_cast<const rg_status*>(t.transport.extension("test.early/1"));
    REQUIRE(early);
    CHECK(early[0] == RG_E_OPERATION);
    CHECK(early[1] == RG_E_OPERATION);
    CHECK(early[2] == RG_E_OPERATION);
    CHECK(t.error().find("exchange: expected a call within connect() or later") != std::string::npos);
  });
}

TEST_CASE("the end of the run fails a call that waits for other members") {
  on_all_ranks([](rank_transport& t, meeting& m) {
    if (t.rank == 2) return m.end();
    std::vector<std::string> parts;
    CHECK(t.gather({0, 1, 2}, "x", parts) == RG_E_PEER);
    CHECK(t.error().find("rank 2 died") != std::string::npos);
  });
}
