// SPDX-License-Identifier: Apache-2.0
//
// The archive of an artifact, before its compression, and the TOML in it.
#include "artifact/portable.hpp"
#include "base/failure.hpp"
#include "config/toml_document.hpp"
#include "files/archive.hpp"

#include <cstdint>
#include <cstdlib>

using namespace regatta;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const archived_file& file : read_tar({reinterpret_cast<const char*>(data), size})) {
      if (!is_archive_name(file.name)) std::abort();
      if (!file.name.ends_with(".toml")) continue;
      (void)unsafe_in(file.content, {});
      try {
        (void)parse_toml(portable_toml(file.content));
      } catch (const toml_error&) {
      }
    }
  } catch (const failure&) {
  }
  return 0;
}
