// SPDX-License-Identifier: Apache-2.0
#include "data/jpeg.hpp"

#include "base/failure.hpp"

#if REGATTA_JPEG
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

namespace regatta {
namespace {

// libjpeg reports an error by calling a function that must not return.
struct error_handler {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX] = "";

  error_handler() {
    jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr info) {
      auto* self = reinterpret_cast<error_handler*>(info->err); // `manager` is its first member
      (*info->err->format_message)(info, self->text);
      std::longjmp(self->back, 1);
    };
    // Warnings mean damaged data, for example an image with a grey half; they count as errors.
    manager.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) (*info->err->error_exit)(info);
    };
  }
};

// The largest images of photographic data sets have about 60 megapixels. A file of 3 KB can claim 65000 x 65000, and
// all of that would be allocated before the first damaged byte is found.
constexpr std::uint64_t most_pixels = std::uint64_t{1} << 27;
constexpr long most_memory = 1L << 30; // of libjpeg itself, which keeps a progressive image as a whole

// No object in this function may need a destructor between setjmp and longjmp.
bool decode(jpeg_decompress_struct& info, error_handler& errors, std::span<const std::uint8_t> file,
            std::uint32_t least, image& out) {
  if (setjmp(errors.back)) return false;
  jpeg_create_decompress(&info);
  info.mem->max_memory_to_use = most_memory;
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  if (std::uint64_t{info.image_width} * info.image_height > most_pixels) {
    std::snprintf(errors.text, sizeof errors.text, "claims %u x %u pixels: more than %llu are not decoded",
                  info.image_width, info.image_height, static_cast<unsigned long long>(most_pixels));
    return false;
  }
  info.out_color_space = JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  const std::uint32_t shorter = std::min(info.image_width, info.image_height);
  info.scale_denom = 8;
  info.scale_num = 8;
  while (info.scale_num > 1 && shorter * (info.scale_num - 1) / 8 >= least) --info.scale_num;
  jpeg_start_decompress(&info);
  out.width = info.output_width;
  out.height = info.output_height;
  out.pixels.resize(std::size_t{3} * out.width * out.height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = out.pixels.data() + std::size_t{3} * out.width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

bool encode(jpeg_compress_struct& info, error_handler& errors, const image& in, int quality, unsigned char*& bytes,
            unsigned long& size) {
  if (setjmp(errors.back)) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = in.width;
  info.image_height = in.height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    // libjpeg only reads it
    auto* row = const_cast<JSAMPROW>(in.pixels.data() + std::size_t{3} * in.width * info.next_scanline);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

} // namespace

bool decode_jpeg(std::span<const std::uint8_t> file, std::uint32_t least, image& out, std::string& why) {
  error_handler errors;
  jpeg_decompress_struct info{};
  info.err = &errors.manager;
  const bool done = decode(info, errors, file, least, out);
  jpeg_destroy_decompress(&info);
  if (!done) why = errors.text;
  return done;
}

std::vector<std::uint8_t> encode_jpeg(const image& in, int quality) {
  error_handler errors;
  jpeg_compress_struct info{};
  info.err = &errors.manager;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = encode(info, errors, in, quality, bytes, size);
  jpeg_destroy_compress(&info);
  std::vector<std::uint8_t> file(bytes, bytes + (done ? size : 0));
  std::free(bytes);
  if (!done) throw failure(exit_code::run, std::string("cannot encode a generated image as JPEG: ") + errors.text);
  return file;
}

void require_jpeg() {}

} // namespace regatta

#else

namespace regatta {

void require_jpeg() {
  throw failure(exit_code::usage, "data.format: this build has no JPEG decoder: install libjpeg62-turbo-dev and build "
                                  "again");
}
bool decode_jpeg(std::span<const std::uint8_t>, std::uint32_t, image&, std::string&) {
  require_jpeg();
  return false;
}
std::vector<std::uint8_t> encode_jpeg(const image&, int) {
  require_jpeg();
  return {};
}

} // namespace regatta
#endif
