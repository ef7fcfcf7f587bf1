// SPDX-License-Identifier: Apache-2.0
//
// Functions of a strategy's table that the SDK makes from optional members, called as a host calls them.
#include <regatta/strategy.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

struct survivor {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SURVIVES;
    return plan;
  }
  survivor(rg::comm& c, const parameters&) : comm(c) {}
  rg::task<> end_step(std::uint64_t) { co_return; }
  void left(std::uint32_t rank) {
    if (rank == 0) throw rg::error(RG_E_PEER, "rank 0 had the only copy");
    ++deaths;
    last = rank;
  }
  rg::comm& comm;
  static inline int deaths = 0;
  static inline std::uint32_t last = 0;
};

struct mortal {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) { return {}; }
  mortal(rg::comm& c, const parameters&) : comm(c) {}
  rg::task<> end_step(std::uint64_t) { co_return; }
  rg::comm& comm;
};

const rg_strategy& table_of(const rg_component& c) {
  return *static_cast<const rg_strategy*>(c.functions);
}

struct test_host {
  std::string text;
  rg_host host = rg::make_versioned<rg_host>();
  rg_cluster cluster = rg::make_versioned<rg_cluster>();
  rg_arena arena = rg::make_versioned<rg_arena>();
  rg_strategy_host strategy = rg::make_versioned<rg_strategy_host>();

  test_host() {
    host.context = this;
    host.fail = [](void* self, rg_status status, const char* why) {
      static_cast<test_host*>(self)->text = why;
      return status;
    };
    strategy.host = &host;
    strategy.cluster = &cluster;
    strategy.arena = &arena;
  }
};

} // namespace

TEST_CASE("left() is passed on to a strategy that has it, with its errors") {
  const rg_component component = rg::strategy<survivor>("survivor", "goes on without the others");
  const rg_strategy& table = table_of(component);
  test_host host;
  void* self = nullptr;
  REQUIRE(table.create(&host.strategy, nullptr, &self) == RG_OK);
  CHECK(table.left(self, 3) == RG_OK);
  CHECK(survivor::deaths == 1);
  CHECK(survivor::last == 3);
  CHECK(table.left(self, 0) == RG_E_PEER);
  CHECK(host.text == "rank 0 had the only copy");
  table.destroy(self);
}

TEST_CASE("functions of members that a strategy does not have are null") {
  const rg_component component = rg::strategy<mortal>("mortal", "ends with the first death");
  CHECK(!table_of(component).left);
  CHECK(!table_of(component).save);
  CHECK(!table_of(component).load);
}
