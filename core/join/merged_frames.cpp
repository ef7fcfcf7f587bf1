// SPDX-License-Identifier: Apache-2.0
#include "join/merged_frames.hpp"

#include <string>

#include <fmt/format.h>

#include "base/failure.hpp"

namespace regatta {

using nlohmann::json;

namespace {

constexpr std::size_t most_held = 256 << 10; // bytes

} // namespace

bool merged_frames::add(std::uint32_t rank, message&& frame, std::size_t running) {
  const std::string type = frame.header.at("t");
  // Of an exchange among some ranks, other ranks of this host may have no part to wait for.
  const bool waits = type == "result" || (type == "gather" && frame.header.value("members", json::array()).empty());
  if (waits) waiting_.insert(rank);
  bytes_ += frame.payload.size();
  held_.push_back({rank, std::move(frame)});
  return !waits || waiting_.size() >= running || bytes_ > most_held;
}

bool merged_frames::has_room(const message& frame) const {
  return held_.empty() || bytes_ + frame.payload.size() <= max_payload_bytes;
}

void merged_frames::answered(std::span<const std::uint32_t> ranks) {
  for (const std::uint32_t rank : ranks) waiting_.erase(rank);
}

message merged_frames::take() {
  json frames = json::array();
  blob payload;
  payload.reserve(std::exchange(bytes_, 0));
  for (auto& [rank, frame] : std::exchange(held_, {})) {
    frames.push_back({rank, frame.payload.size(), std::move(frame.header)});
    payload.insert(payload.end(), frame.payload.begin(), frame.payload.end());
  }
  return {{{"t", "frames"}, {"of", std::move(frames)}}, std::move(payload)};
}

std::vector<rank_frame> split_frames(const message& merged) {
  std::vector<rank_frame> frames;
  std::span<const std::uint8_t> rest(merged.payload);
  for (const json& one : merged.header.at("of")) {
    const std::size_t size = one.at(1);
    if (size > rest.size())
      throw failure(exit_code::run, fmt::format("expected {} bytes of a frame of rank {}, got {}", size,
                                                one.at(0).dump(), rest.size()));
    const auto payload = rest.first(size);
    rest = rest.subspan(size);
    frames.push_back({one.at(0), {one.at(2), {payload.begin(), payload.end()}}});
  }
  return frames;
}

} // namespace regatta
