// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace regatta {

// Compresses what is added, in the format of gzip. The constructor throws std::bad_alloc if zlib has no memory.
class gzip_writer {
public:
  gzip_writer();
  ~gzip_writer();
  gzip_writer(const gzip_writer&) = delete;
  gzip_writer& operator=(const gzip_writer&) = delete;
  // Requires less than 4 GiB in one call.
  void add(std::string_view bytes) { deflate(bytes, false); }
  // Returns the whole file. Call it once, last.
  std::string finish();

private:
  void deflate(std::string_view bytes, bool last);
  struct stream;
  std::unique_ptr<stream> stream_;
  std::string out_;
};

// [any] Returns the content of `file`, the bytes of a file in the format of gzip (less than 4 GiB); ignores bytes after
// its first member. Throws failure (usage) if it is none, is cut short or damaged, or holds more than `most` bytes.
std::string gunzip(std::string_view file, std::uint64_t most);

} // namespace regatta
