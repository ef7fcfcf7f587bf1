// SPDX-License-Identifier: Apache-2.0
//
// The threads that share the reading of a batch.
#include "data_fixture.hpp"

#include "data/thread_pool.hpp"

#include <atomic>
#include <stdexcept>

using namespace data_fixture;
using namespace regatta;

TEST_CASE("a thread pool shares a loop, and hands on what is thrown") {
  thread_pool c(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::atomic<int>> done(97);
    c.each(97, [&](std::uint64_t k) { ++done[k]; });
    for (const auto& d : done) CHECK(d == 1);
  }
  CHECK_THROWS_WITH_AS(c.each(1000,
                              [](std::uint64_t k) {
                                if (k == 500) throw std::runtime_error("five hundred");
                              }),
                       "five hundred", std::runtime_error);
  int after = 0;
  c.each(1, [&](std::uint64_t) { ++after; });
  CHECK(after == 1);
}
