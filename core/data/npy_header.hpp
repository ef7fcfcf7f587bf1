// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regatta {

enum class npy_type { f4, f8, i4, i8, u1 };

// The header of a file in NumPy's format (numpy.lib.format; versions 1 to 3).
struct npy_header {
  npy_type type;
  std::vector<std::uint64_t> shape;
  std::uint64_t elements;
  std::uint64_t data; // offset of the first element

  std::uint64_t element_bytes() const noexcept;
};

// [main] Parses the header, and checks that the data is exactly as long as it says. `name` is the file's name, for
// messages. Throws failure (run) for anything but C-ordered, little-endian f4, f8, i4, i8 and u1.
npy_header parse_npy_header(std::span<const std::uint8_t> file, const std::string& name);

const char* npy_type_name(npy_type type) noexcept;

} // namespace regatta
