// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regatta {

struct image {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels; // [height][width][red, green, blue]
};

// [any] Decodes the bytes of a JPEG file into `out`, in RGB. Scales the image down, to n/8 of its size for the smallest
// n of 1 to 8 that leaves at least `least` pixels on its shorter side (8 if it has fewer), which saves most of the
// work. Returns false and sets `why` if the file is damaged, its colours do not convert to RGB (CMYK) or it has more
// than 2^27 pixels; `out` is then unspecified. Throws failure (usage) if this build has no JPEG decoder.
bool decode_jpeg(std::span<const std::uint8_t> file, std::uint32_t least, image& out, std::string& why);

// [any] Returns the bytes of a JPEG file; `quality` is from 1 to 100. Throws failure: usage if this build has no JPEG
// encoder, run if the image cannot be encoded.
std::vector<std::uint8_t> encode_jpeg(const image& in, int quality);

// [any] Throws failure (usage) if this build has no JPEG decoder and encoder.
void require_jpeg();

} // namespace regatta
