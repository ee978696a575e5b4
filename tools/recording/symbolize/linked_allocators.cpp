#include "tools/recording/symbolize/linked_allocators.h"

#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tools/base/foreign_file.h"

namespace oomrec::tools::recording {
namespace {

struct Sign {
  std::string_view allocator, message;
};
// Part of its messages, in all of its versions.
constexpr Sign kSigns[] = {
    {"jemalloc", "<jemalloc>: "},
    {"mimalloc", "mimalloc: warning: "},
    {"tcmalloc", "tcmalloc: allocation failed"},
};
constexpr std::size_t kLongestMessage = 32;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

class Module {
 public:
  explicit Module(const ForeignFile& file)
      : descriptor_(file.descriptor()),
        elf_(::elf_version(EV_CURRENT) != EV_NONE
                 ? ::elf_begin(descriptor_, ELF_C_READ_MMAP, nullptr)
                 : nullptr) {}
  ~Module() { ::elf_end(elf_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // visit(section, header)
  template <class Visit>
  void for_each_section(Visit visit) const {
    for (Elf_Scn* section = ::elf_nextscn(elf_, nullptr); section != nullptr;
         section = ::elf_nextscn(elf_, section)) {
      GElf_Shdr header;
      if (::gelf_getshdr(section, &header) != nullptr) visit(section, header);
    }
  }

  // An allocator of the whole program, or an interpreter, whose heap is recorded by its objects.
  bool is_observed() const {
    bool found = false;
    for_each_section([&](Elf_Scn* section, const GElf_Shdr& header) {
      if (header.sh_type != SHT_DYNSYM || header.sh_entsize == 0) return;
      Elf_Data* const data = ::elf_getdata(section, nullptr);
      const std::uint64_t count = data != nullptr ? data->d_size / header.sh_entsize : 0;
      for (std::uint64_t i = 0; i < count && !found; ++i) {
        GElf_Sym symbol;
        if (::gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
        const char* const name = ::elf_strptr(elf_, header.sh_link, symbol.st_name);
        found = symbol.st_shndx != SHN_UNDEF && name != nullptr &&
                (std::strcmp(name, "malloc") == 0 || std::strcmp(name, "PyObject_Malloc") == 0);
      }
    });
    return found;
  }

  // visit(piece): pieces overlap, so that each message is in one of them as a whole.
  template <class Visit>
  void for_each_piece_of_constants(Visit visit) const {
    std::string piece(kPieceBytes, '\0');
    std::size_t left = kMostConstantBytes;
    for_each_section([&](Elf_Scn*, const GElf_Shdr& header) {
      constexpr std::uint64_t kKind = SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR;
      if (header.sh_type != SHT_PROGBITS || (header.sh_flags & kKind) != SHF_ALLOC) return;
      for (std::uint64_t at = 0; at < header.sh_size && left != 0;
           at += kPieceBytes - kLongestMessage) {
        const std::size_t wanted = std::min<std::uint64_t>(kPieceBytes, header.sh_size - at);
        const ssize_t got =
            ::pread(descriptor_, piece.data(), wanted, static_cast<off_t>(header.sh_offset + at));
        if (got <= 0) return;
        visit(std::string_view{piece}.substr(0, static_cast<std::size_t>(got)));
        left -= std::min(left, wanted);
      }
    });
  }

 private:
  const int descriptor_;
  Elf* const elf_;
};

bool contains(std::string_view text, std::string_view message) {
  return ::memmem(text.data(), text.size(), message.data(), message.size()) != nullptr;
}

}  // namespace

std::vector<std::string_view> linked_allocators_in(const std::filesystem::path& module) {
  std::vector<std::string_view> found;
  const ForeignFile file{ForeignPath::named(module)};
  if (!file.problem().empty()) return found;
  const Module elf{file};
  if (elf.is_observed()) return found;
  elf.for_each_piece_of_constants([&](std::string_view piece) {
    for (const Sign& sign : kSigns)
      if (std::ranges::find(found, sign.allocator) == found.end() && contains(piece, sign.message))
        found.push_back(sign.allocator);
  });
  std::ranges::sort(found);
  return found;
}

}  // namespace oomrec::tools::recording
