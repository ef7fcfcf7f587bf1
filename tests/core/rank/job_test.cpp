// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "rank/job.hpp"

using namespace regatta;

TEST_CASE("ranks take devices by their number on their real host") {
  rank_job job;
  job.layout.host_of = {0, 1, 0, 1, 1};
  job.several_hosts = true;
  const auto local = [&] {
    std::vector<std::uint32_t> all;
    for (std::uint32_t r = 0; r < 5; ++r) all.push_back(job.local_rank(r));
    return all;
  };
  CHECK(local() == std::vector<std::uint32_t>{0, 0, 1, 1, 2});
  job.several_hosts = false; // cluster.hosts imitates hosts: all ranks share this one's devices
  CHECK(local() == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
}
