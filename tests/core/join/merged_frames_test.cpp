// SPDX-License-Identifier: Apache-2.0
#include "join/merged_frames.hpp"

#include <doctest/doctest.h>

#include "base/failure.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

message part(std::uint8_t value, std::size_t bytes = 1) {
  return {{{"t", "gather"}, {"tag", "x"}}, blob(bytes, value)};
}

} // namespace

TEST_CASE("the frames of ranks that wait are held until all wait, and come out as they went in") {
  merged_frames held;
  CHECK(held.empty());
  CHECK_FALSE(held.add(4, part(40, 3), 3));
  CHECK_FALSE(held.add(7, part(70, 0), 3));
  CHECK(held.add(5, {{{"t", "result"}}, blob{50}}, 3));
  const std::vector<rank_frame> all = split_frames(held.take());
  CHECK(held.empty());
  REQUIRE(all.size() == 3);
  CHECK(all[0].rank == 4);
  CHECK(all[0].frame.header == json{{"t", "gather"}, {"tag", "x"}});
  CHECK(all[0].frame.payload == blob(3, 40));
  CHECK(all[1].rank == 7);
  CHECK(all[1].frame.payload.empty());
  CHECK(all[2].rank == 5);
  CHECK(all[2].frame.header == json{{"t", "result"}});
  CHECK(all[2].frame.payload == blob{50});
}

TEST_CASE("a rank waits until it is answered, whether its frame was sent or not") {
  merged_frames held;
  held.add(0, part(1), 2);
  held.take(); // at a tick
  CHECK(held.add(1, part(2), 2));
  held.take();
  const std::uint32_t both[] = {0, 1};
  held.answered(both);
  CHECK_FALSE(held.add(0, part(3), 2));
}

TEST_CASE("a frame after which no rank waits goes at once, behind those that are held; so do many bytes") {
  merged_frames held;
  CHECK_FALSE(held.add(0, part(1), 2));
  CHECK(held.add(1, {{{"t", "failed"}}, {}}, 2));
  const std::vector<rank_frame> all = split_frames(held.take());
  REQUIRE(all.size() == 2);
  CHECK(all[0].rank == 0);
  CHECK(all[1].frame.header == json{{"t", "failed"}});
  CHECK(held.add(0, part(1, 1 << 20), 2));
}

TEST_CASE("the part of an exchange among some ranks goes at once, as the others may take no part") {
  merged_frames held;
  message some = part(1);
  some.header["members"] = {0, 3};
  CHECK(held.add(0, std::move(some), 2));
  held.take();
  CHECK_FALSE(held.add(1, part(2), 2)); // rank 0 does not wait for this exchange yet
  CHECK(held.add(0, part(3), 2));
}

TEST_CASE("frames that would be too long together are not merged") {
  merged_frames held;
  message longest = part(1, 0);
  longest.payload.resize(max_payload_bytes);
  CHECK(held.has_room(longest)); // alone
  held.add(1, part(2), 2);
  CHECK_FALSE(held.has_room(longest));
  CHECK(held.has_room(part(3)));
}

TEST_CASE("a frame without a type, and a payload that is too short, are refused") {
  merged_frames held;
  CHECK_THROWS_AS(held.add(0, {json::object(), {}}, 1), json::exception);
  CHECK(held.empty());
  held.add(0, part(1, 2), 1);
  message merged = held.take();
  merged.payload.pop_back();
  CHECK_THROWS_WITH_AS(split_frames(merged), "expected 2 bytes of a frame of rank 0, got 1", failure);
  CHECK_THROWS_AS(split_frames({{{"t", "frames"}}, {}}), json::exception);
}
