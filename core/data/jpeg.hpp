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

// [any] Decodes the bytes of a JPEG file. The image may be scaled down by up to 8, which saves most of the work, but
// not below `least` on its shorter side unless it is smaller already. Returns false and sets `why` if the file is no
// valid JPEG.
bool decode_jpeg(std::span<const std::uint8_t> file, std::uint32_t least, picture& out, std::string& why);

// [any] `quality` from 1 to 100.
std::vector<std::uint8_t> encode_jpeg(const picture& in, int quality);

// Throws failure (usage) if this build has no JPEG decoder.
void require_jpeg();

} // namespace regatta
