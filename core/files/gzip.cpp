// SPDX-License-Identifier: Apache-2.0
#include "files/gzip.hpp"

#include "base/failure.hpp"

#include <array>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

namespace regatta {
namespace {

constexpr int with_gzip_header = 16 + MAX_WBITS; // zlib.h, deflateInit2

// zlib does not write to its input.
Bytef* input_of(std::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

} // namespace

struct gzip_writer::stream {
  z_stream z{};
};

gzip_writer::gzip_writer() : stream_(std::make_unique<stream>()) {
  if (deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, with_gzip_header, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

gzip_writer::~gzip_writer() {
  deflateEnd(&stream_->z);
}

void gzip_writer::deflate(std::string_view bytes, bool last) {
  z_stream& z = stream_->z;
  std::array<char, 1 << 16> some;
  z.next_in = input_of(bytes);
  z.avail_in = static_cast<uInt>(bytes.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(some.data());
    z.avail_out = some.size();
    ::deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    out_.append(some.data(), some.size() - z.avail_out);
  } while (z.avail_out == 0);
}

std::string gzip_writer::finish() {
  deflate({}, true);
  return std::move(out_);
}

std::string gunzip(std::string_view file, std::uint64_t most) {
  z_stream z{};
  if (inflateInit2(&z, with_gzip_header) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&z, inflateEnd);
  std::string out;
  std::array<char, 1 << 16> some;
  z.next_in = input_of(file);
  z.avail_in = static_cast<uInt>(file.size());
  for (int status = Z_OK; status != Z_STREAM_END;) {
    z.next_out = reinterpret_cast<Bytef*>(some.data());
    z.avail_out = some.size();
    status = inflate(&z, Z_NO_FLUSH);
    out.append(some.data(), some.size() - z.avail_out);
    if (out.size() > most) throw failure(exit_code::usage, fmt::format("it holds more than {} bytes", most));
    if (status != Z_OK && status != Z_STREAM_END)
      throw failure(exit_code::usage, "expected a whole file in the format of gzip, got other or fewer bytes");
  }
  return out;
}

} // namespace regatta
