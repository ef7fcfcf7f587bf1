// SPDX-License-Identifier: Apache-2.0
#include "check/harness/allocation_watch.hpp"

#include "check/harness/suite.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

using watch_function = int (*)(std::uintptr_t first, std::uintptr_t end);

struct segment_search {
  const std::vector<std::filesystem::path>& files;
  watch_function watch;
  std::size_t found = 0;
};

int watch_segments(dl_phdr_info* library, std::size_t, void* data) {
  auto& s = *static_cast<segment_search*>(data);
  std::error_code ec;
  for (const auto& file : s.files) {
    if (!*library->dlpi_name || !std::filesystem::equivalent(library->dlpi_name, file, ec)) continue;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const auto& segment = library->dlpi_phdr[i];
      const std::uintptr_t first = library->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD && segment.p_flags & PF_X)
        s.found += static_cast<std::size_t>(s.watch(first, first + segment.p_memsz));
    }
  }
  return 0;
}

} // namespace

std::string allocation_counter_library() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {};
#endif
  std::error_code ec;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ec);
  const auto file = program.parent_path() / "../lib/regatta/check/count_allocations.so";
  static const int descriptor = ec ? -1 : open(file.c_str(), O_RDONLY | O_CLOEXEC);
  return descriptor < 0 ? std::string{} : "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
}

allocation_watch::allocation_watch(const std::vector<std::filesystem::path>& files) {
  const auto watch = reinterpret_cast<watch_function>(dlsym(RTLD_DEFAULT, "regatta_watch_allocations"));
  all_ = reinterpret_cast<std::uint64_t (*)()>(dlsym(RTLD_DEFAULT, "regatta_allocations"));
  large_ = reinterpret_cast<std::uint64_t (*)()>(dlsym(RTLD_DEFAULT, "regatta_large_allocations"));
  if (!watch || !all_ || !large_) throw skipped("allocations are not counted with --in-process or a sanitizer");
  segment_search s{files, watch};
  dl_iterate_phdr(watch_segments, &s);
  require(s.found >= files.size(), "the plugin's code is not among the loaded libraries (dl_iterate_phdr)");
}

} // namespace regatta::conformance
