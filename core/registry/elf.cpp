// SPDX-License-Identifier: Apache-2.0
#include "registry/elf.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include <elf.h>

#include <fmt/core.h>

namespace regatta {
namespace {

std::string architecture(unsigned char bits, unsigned machine) {
  switch (machine) {
  case EM_X86_64: return bits == ELFCLASS32 ? "x32" : "x86-64";
  case EM_386: return "32-bit x86";
  case EM_AARCH64: return "AArch64";
  case EM_ARM: return "32-bit ARM";
  case EM_RISCV: return bits == ELFCLASS32 ? "32-bit RISC-V" : "RISC-V";
  case EM_PPC64: return "POWER";
  case EM_S390: return "S/390";
  default: return fmt::format("an architecture of number {}", machine);
  }
}

template <class T> bool read_at(std::ifstream& in, std::uint64_t offset, T& value) {
  in.clear();
  return in.seekg(static_cast<std::streamoff>(offset)) && in.read(reinterpret_cast<char*>(&value), sizeof value);
}

// Offset and size come from the file: their sum can overflow.
bool within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

// Reads the header of this program, which gives the architecture of the machine.
std::optional<Elf64_Ehdr> own_header() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  if (!in || !read_at(in, 0, header)) return std::nullopt;
  return header;
}

} // namespace

std::string elf_problem(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const auto status = fs::status(file, ec);
  if (status.type() == fs::file_type::not_found)
    return fs::is_symlink(fs::symlink_status(file, ec))
               ? "a link to a file that does not exist: build or install it again"
               : "no such file: build it, or correct the path";
  if (status.type() == fs::file_type::none)
    return fmt::format("cannot be read ({}): check its permissions", ec.message());
  // Opening a FIFO or a device can block for ever.
  if (!fs::is_regular_file(status)) return "not a regular file: remove it from the plugin folder";
  std::ifstream in(file, std::ios::binary);
  if (!in) return fmt::format("cannot be read ({}): check its permissions", std::strerror(errno));
  const std::uint64_t size = fs::file_size(file, ec);
  if (size == 0) return "empty: build or copy it again";

  unsigned char ident[EI_NIDENT]{};
  if (!read_at(in, 0, ident) || std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
    if (size < SELFMAG || std::memcmp(ident, ELFMAG, SELFMAG) != 0)
      return "not a shared object (no ELF file): remove it from the plugin folder";
    return fmt::format("truncated, {} bytes are left: build or copy it again", size);
  }
  const auto own = own_header();
  if (own && (ident[EI_CLASS] != own->e_ident[EI_CLASS] || ident[EI_DATA] != own->e_ident[EI_DATA])) {
    Elf32_Half machine = 0; // at the same offset in both classes
    if (!read_at(in, offsetof(Elf64_Ehdr, e_machine), machine) || ident[EI_DATA] != own->e_ident[EI_DATA])
      return "built for another architecture: build it on this machine";
    return fmt::format("built for {}, this machine is {}: build it on this machine",
                       architecture(ident[EI_CLASS], machine), architecture(own->e_ident[EI_CLASS], own->e_machine));
  }
  Elf64_Ehdr header{};
  if (!read_at(in, 0, header)) return fmt::format("truncated, {} bytes are left: build or copy it again", size);
  if (own && header.e_machine != own->e_machine)
    return fmt::format("built for {}, this machine is {}: build it on this machine",
                       architecture(ident[EI_CLASS], header.e_machine), architecture(ident[EI_CLASS], own->e_machine));
  if (header.e_type != ET_DYN)
    return "an ELF file, but not a shared object: link it with -shared, as regatta_add_plugin() does";

  const auto truncated = [&] {
    return fmt::format("truncated, its {} bytes are fewer than its headers declare: build or copy it again", size);
  };
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr))
    return "an ELF file without program headers: build it again";
  if (!within(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), size)) return truncated();
  if (!within(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize, size)) return truncated();
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(in, header.e_phoff + i * sizeof segment, segment)) return truncated();
    if (segment.p_type == PT_LOAD && !within(segment.p_offset, segment.p_filesz, size)) return truncated();
  }
  return {};
}

} // namespace regatta
