// SPDX-License-Identifier: Apache-2.0
//
// From train.batch to the samples of a worker.
#include "campaign/batch_per_worker.hpp"

#include "base/failure.hpp"

#include <doctest/doctest.h>

using namespace regatta;

namespace {

case_config of(const char* scaling, std::int64_t workers, std::int64_t batch, std::int64_t micros = 1,
               const char* unit = "samples") {
  case_config c;
  c.train.scaling = scaling;
  c.train.batch = batch;
  c.train.accumulate = micros;
  c.train.batch_unit = unit;
  c.cluster.workers = workers;
  return c;
}

std::uint64_t samples(const case_config& c) {
  return batch_per_worker(c, []() -> std::uint64_t { throw failure(exit_code::usage, "takes no tokens"); });
}

std::uint64_t samples_of_tokens(const case_config& c) {
  return batch_per_worker(c, [] { return std::uint64_t{10}; });
}

} // namespace

TEST_CASE("the batch is that of a worker, or shared by all; tokens are asked for only if it counts them") {
  CHECK(samples(of("weak", 4, 32)) == 32);
  CHECK(samples(of("strong", 4, 32)) == 8);
  CHECK(samples(of("strong", 4, 32, 2)) == 8); // over both micro-batches
  CHECK_THROWS_WITH_AS(samples(of("weak", 1, 32, 1, "tokens")), "takes no tokens", failure);
}

TEST_CASE("tokens become whole samples of whole micro-batches, rounded down") {
  CHECK(samples_of_tokens(of("weak", 4, 109, 1, "tokens")) == 10);
  CHECK(samples_of_tokens(of("strong", 4, 109, 1, "tokens")) == 2);
  CHECK(samples_of_tokens(of("weak", 4, 109, 4, "tokens")) == 8);
}

TEST_CASE("a batch that cannot be divided is refused with its key") {
  CHECK_THROWS_WITH_AS(samples(of("strong", 3, 32)),
                       "train.batch: expected a multiple of the 3 workers, which share the batch (train.scaling = "
                       "\"strong\"), got 32",
                       failure);
  CHECK_THROWS_WITH_AS(samples(of("weak", 3, 32, 5)),
                       "train.accumulate: expected a divisor of a worker's batch of 32, got 5", failure);
  CHECK_THROWS_WITH_AS(samples_of_tokens(of("strong", 3, 50, 2, "tokens")),
                       "train.batch: expected 60 tokens or more, one sample of 10 for each of 3 workers and 2 "
                       "micro-batches, got 50",
                       failure);
}
