#include "recorder/symbols/file_symbols.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::symbols {
namespace {

// In pieces: a hook has little stack.
bool same_first_page(InHook hook, const std::byte* file, std::uint64_t start) noexcept {
  constexpr std::size_t kPage = 4096;
  std::byte piece[512];
  for (std::size_t at = 0; at < kPage; at += sizeof piece)
    if (!read_own_memory(hook, start + at, piece, sizeof piece) ||
        std::memcmp(piece, file + at, sizeof piece) != 0)
      return false;
  return true;
}

}  // namespace

FileSymbols::FileSymbols(InHook hook, const char* path, std::uint64_t start) noexcept {
  constexpr std::uint64_t kSmallest = 4096;
  // Non-blocking: a pipe may be there by now.
  const system::File file = system::File::open(path, O_RDONLY | O_NONBLOCK);
  struct stat facts {};
  if (!file.is_open() || system::call(SYS_fstat, file.descriptor(), &facts) != 0 ||
      static_cast<std::uint64_t>(facts.st_size) < kSmallest)
    return;
  const long mapped =
      system::call(SYS_mmap, nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped <= 0) return;
  file_ = reinterpret_cast<const std::byte*>(mapped);
  bytes_ = static_cast<std::uint64_t>(facts.st_size);
  if (!same_first_page(hook, file_, start) || !find_table()) symbols_ = {};
}

FileSymbols::~FileSymbols() {
  if (file_ != nullptr) system::call(SYS_munmap, file_, bytes_);
}

template <class T>
std::span<const T> FileSymbols::array_at(std::uint64_t offset, std::uint64_t count) const noexcept {
  if (offset % alignof(T) != 0 || offset > bytes_ || count > (bytes_ - offset) / sizeof(T))
    return {};
  return {reinterpret_cast<const T*>(file_ + offset), static_cast<std::size_t>(count)};
}

bool FileSymbols::find_table() noexcept {
  const Elf64_Ehdr& header = *reinterpret_cast<const Elf64_Ehdr*>(file_);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return false;
  const auto sections = array_at<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    symbols_ = array_at<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
    strings_ = array_at<char>(names.sh_offset, names.sh_size);
    return !symbols_.empty() && !strings_.empty();
  }
  return false;
}

std::string_view FileSymbols::name_of(const Elf64_Sym& symbol) const noexcept {
  if (symbol.st_name >= strings_.size()) return {};
  const char* const name = strings_.data() + symbol.st_name;
  return {name, strnlen(name, strings_.size() - symbol.st_name)};
}

std::string_view FileSymbols::function_at(std::uint64_t value) const noexcept {
  for (const Elf64_Sym& symbol : symbols_)
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
        value >= symbol.st_value && value - symbol.st_value < symbol.st_size)
      return name_of(symbol);
  return {};
}

std::uint64_t FileSymbols::value_of(std::string_view name) const noexcept {
  for (const Elf64_Sym& symbol : symbols_)
    if (symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && name_of(symbol) == name)
      return symbol.st_value;
  return 0;
}

bool name_in_file(InHook hook, const char* path, std::uint64_t start, std::uint64_t value,
                  char* name, std::size_t capacity) noexcept {
  constexpr std::size_t kMostSymbols = 32'768;
  const auto function_in = [&](const char* file_path) noexcept {
    const FileSymbols file(hook, file_path, start);
    const bool is_quick = file.valid() && file.count() <= kMostSymbols;
    const std::string_view function = is_quick ? file.function_at(value) : std::string_view{};
    if (function.empty()) return false;
    system::Text text{name, capacity};
    text << function;
    return true;
  };
  return function_in(path) || function_in("/proc/self/exe");
}

}  // namespace oomrec::symbols
