// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regatta {

// Types of elements by NumPy's names, little-endian: f4 is a 4-byte float, u1 an unsigned byte.
enum class npy_type { f4, f8, i4, i8, u1 };

// The header of a file in NumPy's format (numpy.lib.format; versions 1 to 3).
struct npy_header {
  npy_type type;
  std::vector<std::uint64_t> shape; // empty: one number
  std::uint64_t elements;           // product of the shape
  std::uint64_t data;               // offset of the first element in the file, in bytes

  std::uint64_t element_bytes() const noexcept; // of one element
};

// [any] Parses the header of a whole file, and checks that the data behind it is exactly as long as it says. `name` is
// the file's name, for messages. Throws failure (run) if the file is damaged or its array is not C-ordered, or its
// elements are none of npy_type.
npy_header parse_npy_header(std::span<const std::uint8_t> file, const std::string& name);

// Returns "f4" and so on.
const char* npy_type_name(npy_type type) noexcept;

} // namespace regatta
