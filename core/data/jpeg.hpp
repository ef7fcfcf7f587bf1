// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regatta {

struct picture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels; // [height][width][red, green, blue]
};

// Decodes a JPEG file's bytes; the picture may come out smaller, by up to eight times, but not below `least` on its
// shorter side, which saves most of the work. Nothing, and why, where it is none. [any]
bool decode_jpeg(std::span<const std::uint8_t> file, std::uint32_t least, picture& out, std::string& why);

// `quality` from 1 to 100. [any]
std::vector<std::uint8_t> encode_jpeg(const picture& in, int quality);

// Throws failure (usage) where this build has no JPEG decoder.
void require_jpeg();

} // namespace regatta
