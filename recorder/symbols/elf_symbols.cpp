#include "recorder/symbols/elf_symbols.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "common/machine/page.h"
#include "common/system/syscalls.h"

namespace oomrec::symbols {
namespace {

constexpr std::uint32_t kMaxSymbols = 4u << 20;  // a forged or torn table ends here

bool is_function(const Elf64_Sym& symbol) noexcept {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
         (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

std::uint32_t gnu_hash_of(std::string_view name) noexcept {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::uint32_t sysv_hash_of(std::string_view name) noexcept {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    hash ^= (hash >> 24) & 0xf0;
    hash &= 0x0fffffff;
  }
  return hash;
}

// Fewer leading underscores, then shorter: "malloc" before "__libc_malloc".
bool is_plainer(std::string_view a, std::string_view b) noexcept {
  const auto underscores = [](std::string_view s) {
    return std::min(s.find_first_not_of('_'), s.size());
  };
  if (underscores(a) != underscores(b)) return underscores(a) < underscores(b);
  return a.size() < b.size();
}

}  // namespace

bool read_own_memory(InHook, std::uint64_t address, void* out, std::size_t bytes) noexcept {
  const iovec to{out, bytes};
  const iovec from{reinterpret_cast<void*>(address), bytes};
  const long pid = system::call(SYS_getpid);
  return system::call(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0) == static_cast<long>(bytes);
}

ElfSymbols::ElfSymbols(InHook, std::uint64_t start, std::span<std::byte> window) noexcept
    : window_(window) {
  if (start == 0 || !read_program_headers(start)) symbols_ = 0;
}

// Reads only within one readable segment. (The ELF header itself is read before these are known.)
bool ElfSymbols::read(std::uint64_t address, void* out, std::size_t bytes) noexcept {
  std::uint64_t end = address + bytes;
  if (segment_count_ != 0) {
    const auto* const segment =
        std::find_if(segments_, segments_ + segment_count_,
                     [=](const Segment& s) { return address >= s.start && end <= s.end; });
    if (segment == segments_ + segment_count_ || end < address) return false;
    end = segment->end;
  }
  if (window_.empty()) {
    std::memcpy(out, reinterpret_cast<const void*>(address), bytes);
    return true;
  }
  if (bytes > window_.size()) return false;
  if (address < window_start_ || address + bytes > window_start_ + window_bytes_) {
    const std::size_t wanted = std::min<std::uint64_t>(window_.size(), end - address);
    window_bytes_ = 0;
    if (!read_own_memory(OutsideHooks::in_hook(), address, window_.data(), wanted)) return false;
    window_start_ = address;
    window_bytes_ = wanted;
  }
  std::memcpy(out, window_.data() + (address - window_start_), bytes);
  return true;
}

bool ElfSymbols::read_program_headers(std::uint64_t start) noexcept {
  Elf64_Ehdr header;
  if (!read(start, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  // The program headers lie in the first segment, within its first page as every linker does it.
  if (header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr) > 4096) return false;
  Segment found[kMaxSegments];
  std::size_t count = 0;
  std::uint64_t dynamic = 0;
  std::uint64_t dynamic_bytes = 0;
  bool first = true;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    if (!read(start + header.e_phoff + i * sizeof program, program)) return false;
    if (program.p_type == PT_LOAD) {
      if (first) bias_ = start - machine::page_down(program.p_vaddr);
      first = false;
      if ((program.p_flags & PF_R) != 0 && count < kMaxSegments) {
        const std::uint64_t at = bias_ + program.p_vaddr;
        found[count++] = {machine::page_down(at), at + program.p_memsz};
      }
    } else if (program.p_type == PT_DYNAMIC) {
      dynamic = program.p_vaddr;
      dynamic_bytes = program.p_memsz;
    }
  }
  std::copy(found, found + count, segments_);
  segment_count_ = count;
  return count != 0 && dynamic != 0 && read_dynamic_section(bias_ + dynamic, dynamic_bytes);
}

bool ElfSymbols::read_dynamic_section(std::uint64_t address, std::uint64_t bytes) noexcept {
  for (std::uint64_t at = address; at + sizeof(Elf64_Dyn) <= address + bytes;
       at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    if (!read(at, entry)) return false;
    // glibc stores addresses here, the vDSO keeps offsets.
    const std::uint64_t value = entry.d_un.d_ptr;
    const std::uint64_t pointer = value < bias_ ? value + bias_ : value;
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB) symbols_ = pointer;
    if (entry.d_tag == DT_STRTAB) strings_ = pointer;
    if (entry.d_tag == DT_STRSZ) string_bytes_ = value;
    if (entry.d_tag == DT_GNU_HASH) gnu_hash_ = pointer;
    if (entry.d_tag == DT_HASH) sysv_hash_ = pointer;
  }
  return symbols_ != 0 && strings_ != 0 && (gnu_hash_ != 0 || sysv_hash_ != 0);
}

namespace {
// DT_GNU_HASH: four words, then 64-bit bloom words, buckets, and one chain word for each symbol
// from first_symbol on; the last of a bucket has bit 0 set.
struct GnuHashHeader {
  std::uint32_t buckets, first_symbol, bloom_words, bloom_shift;
};

// DT_HASH: two words, then buckets, and one chain word for each symbol: the next one, 0 for none.
struct SysvHashHeader {
  std::uint32_t buckets, symbols;
};
}  // namespace

// The number of symbols in the table. With DT_GNU_HASH alone no header contains it, so it is found
// at the end of the last chain.
std::uint32_t ElfSymbols::symbol_count() noexcept {
  if (sysv_hash_ != 0) {
    SysvHashHeader header;
    if (read(sysv_hash_, header)) return std::min(header.symbols, kMaxSymbols);
  }
  GnuHashHeader header;
  if (gnu_hash_ == 0 || !read(gnu_hash_, header)) return 0;
  const std::uint64_t buckets = gnu_hash_ + sizeof header + header.bloom_words * std::uint64_t{8};
  const std::uint64_t chains = buckets + header.buckets * std::uint64_t{4};
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < std::min(header.buckets, kMaxSymbols); ++i) {
    std::uint32_t symbol = 0;
    if (!read(buckets + i * std::uint64_t{4}, symbol)) return 0;
    last = std::max(last, symbol);
  }
  if (last < header.first_symbol) return header.first_symbol;
  std::uint32_t chain = 0;
  do {
    if (!read(chains + (last - header.first_symbol) * std::uint64_t{4}, chain)) return 0;
  } while (++last < kMaxSymbols && (chain & 1) == 0);
  return last;
}

bool ElfSymbols::name_equals(std::uint32_t name_offset, std::string_view name) noexcept {
  if (name_offset + name.size() + 1 > string_bytes_) return false;
  char piece[32];
  for (std::size_t done = 0; done <= name.size(); done += sizeof piece) {
    const std::size_t bytes = std::min(sizeof piece, name.size() + 1 - done);
    if (!read(strings_ + name_offset + done, piece, bytes)) return false;
    for (std::size_t i = 0; i < bytes; ++i) {
      const char expected = done + i < name.size() ? name[done + i] : '\0';
      if (piece[i] != expected) return false;
    }
  }
  return true;
}

std::size_t ElfSymbols::copy_name(std::uint32_t name_offset, char* out,
                                  std::size_t capacity) noexcept {
  std::size_t length = 0;
  while (length + 1 < capacity && name_offset + length < string_bytes_ &&
         read(strings_ + name_offset + length, out[length]) && out[length] != '\0') {
    ++length;
  }
  out[length] = '\0';
  return length;
}

std::uint64_t ElfSymbols::address_of(InHook, std::string_view name, std::uint64_t* bytes) noexcept {
  Elf64_Sym symbol;
  if (!valid() ||
      !(gnu_hash_ != 0 ? find_by_gnu_hash(name, symbol) : find_by_sysv_hash(name, symbol)))
    return 0;
  if (bytes != nullptr) *bytes = symbol.st_size;
  return bias_ + symbol.st_value;
}

bool ElfSymbols::find_by_gnu_hash(std::string_view name, Elf64_Sym& symbol) noexcept {
  GnuHashHeader header;
  if (!read(gnu_hash_, header) || header.buckets == 0) return false;
  const std::uint32_t hash = gnu_hash_of(name);
  const std::uint64_t buckets = gnu_hash_ + sizeof header + header.bloom_words * std::uint64_t{8};
  const std::uint64_t chains = buckets + header.buckets * std::uint64_t{4};
  std::uint32_t index = 0;
  if (!read(buckets + (hash % header.buckets) * std::uint64_t{4}, index)) return false;
  if (index < header.first_symbol) return false;  // an empty bucket
  for (std::uint32_t chain = 0; index < kMaxSymbols && (chain & 1) == 0; ++index) {
    if (!read(chains + (index - header.first_symbol) * std::uint64_t{4}, chain)) return false;
    if ((chain | 1) == (hash | 1) && defines(index, name, symbol)) return true;
  }
  return false;
}

bool ElfSymbols::find_by_sysv_hash(std::string_view name, Elf64_Sym& symbol) noexcept {
  SysvHashHeader header;
  if (!read(sysv_hash_, header) || header.buckets == 0) return false;
  const std::uint64_t buckets = sysv_hash_ + sizeof header;
  const std::uint64_t chains = buckets + header.buckets * std::uint64_t{4};
  std::uint32_t index = 0;
  if (!read(buckets + (sysv_hash_of(name) % header.buckets) * std::uint64_t{4}, index))
    return false;
  // A damaged chain may be a circle: it has no more entries than there are symbols.
  const std::uint32_t symbols = std::min(header.symbols, kMaxSymbols);
  for (std::uint32_t tried = 0; index != 0 && index < symbols && tried < symbols; ++tried) {
    if (defines(index, name, symbol)) return true;
    if (!read(chains + index * std::uint64_t{4}, index)) return false;
  }
  return false;
}

bool ElfSymbols::defines(std::uint32_t index, std::string_view name, Elf64_Sym& symbol) noexcept {
  return read(symbols_ + index * sizeof symbol, symbol) && symbol.st_shndx != SHN_UNDEF &&
         name_equals(symbol.st_name, name);
}

bool ElfSymbols::name_at(InHook, std::uint64_t pc, char* name, std::size_t capacity,
                         std::uint64_t& offset) noexcept {
  if (!valid() || capacity == 0 || pc < bias_) return false;
  name[0] = '\0';
  const std::uint64_t value = pc - bias_;
  const std::uint32_t count = symbol_count();
  std::uint64_t best = 0;
  std::size_t length = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    Elf64_Sym symbol;
    if (!read(symbols_ + i * sizeof symbol, symbol)) break;
    if (!is_function(symbol) || symbol.st_value > value || symbol.st_value < best) continue;
    if (value - symbol.st_value >= std::max<std::uint64_t>(symbol.st_size, 1)) continue;
    char candidate[256];
    const std::size_t bytes =
        copy_name(symbol.st_name, candidate, std::min(sizeof candidate, capacity));
    if (bytes == 0) continue;
    if (symbol.st_value > best || is_plainer({candidate, bytes}, {name, length})) {
      std::memcpy(name, candidate, bytes + 1);
      length = bytes;
      best = symbol.st_value;
    }
  }
  offset = value - best;
  return length != 0;
}

}  // namespace oomrec::symbols
