#include "tools/processes/attach/remote_module.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "common/machine/page.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::uint64_t kMostNotes = 4096;
constexpr std::uint64_t kMostSymbolBytes = std::uint64_t{64} << 20;  // of a damaged header

// How many symbols a module has, by its GNU hash table: the last one of the longest chain.
std::uint64_t count_by_gnu_hash(const RemoteMemory& memory, std::uint64_t hash) {
  std::uint32_t header[4];  // buckets, first symbol, words of the filter, shift
  if (!memory.read(hash, header) || header[0] > kMostSymbolBytes / 4) return 0;
  std::vector<std::uint32_t> buckets(header[0]);
  const std::uint64_t at = hash + sizeof header + std::uint64_t{header[2]} * 8;
  if (!memory.read(at, buckets.data(), buckets.size() * 4)) return 0;
  std::uint64_t last = buckets.empty() ? 0 : *std::ranges::max_element(buckets);
  if (last < header[1]) return header[1];
  const std::uint64_t chains = at + buckets.size() * 4;
  for (std::uint32_t entry = 0;; ++last) {
    if (!memory.read(chains + (last - header[1]) * 4, entry)) return 0;
    if ((entry & 1) != 0) return last + 1;
  }
}

// The same by the older kind of table (DT_HASH), whose header has the number.
std::uint64_t count_by_sysv_hash(const RemoteMemory& memory, std::uint64_t hash) {
  std::uint32_t header[2];  // buckets, symbols
  return memory.read(hash, header) ? header[1] : 0;
}

}  // namespace

RemoteModule::RemoteModule(const RemoteMemory& memory, std::uint64_t start, std::string path)
    : path_(std::move(path)), start_(start), end_(start) {
  read_segments(memory);
}

std::string_view RemoteModule::file_name() const {
  return std::string_view{path_}.substr(path_.rfind('/') + 1);
}

void RemoteModule::read_segments(const RemoteMemory& memory) {
  Elf64_Ehdr header;
  if (!memory.read(start_, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phnum > 128)
    return;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!memory.read(start_ + header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return;
  bool has_bias = false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    if (!has_bias) bias_ = start_ - machine::page_down(segment.p_vaddr);
    has_bias = true;
    end_ = std::max(end_, machine::page_up(bias_ + segment.p_vaddr + segment.p_memsz));
    const std::uint64_t used = bias_ + segment.p_vaddr + segment.p_filesz;
    if ((segment.p_flags & PF_X) != 0 && (segment.p_flags & PF_W) == 0 &&
        segment.p_memsz == segment.p_filesz)
      gaps_.push_back({(used + 15) & ~std::uint64_t{15},
                       machine::page_up(used) - ((used + 15) & ~std::uint64_t{15})});
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) read_dynamic(memory, segment);
    if (segment.p_type == PT_NOTE && segment.p_align == 4)
      read_notes(memory, bias_ + segment.p_vaddr, segment.p_memsz);
  }
}

void RemoteModule::read_notes(const RemoteMemory& memory, std::uint64_t address,
                              std::uint64_t bytes) {
  std::string notes(std::min(bytes, kMostNotes), '\0');
  notes.resize(memory.read_some(address, notes.data(), notes.size()));
  const auto padded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
  for (std::uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::uint64_t name = at + sizeof note;
    const std::uint64_t text = name + padded(note.n_namesz);
    if (text + note.n_descsz > notes.size()) return;
    if (note.n_type == NT_GNU_BUILD_ID && notes.compare(name, 3, ELF_NOTE_GNU) == 0)
      build_id_ = notes.substr(text, note.n_descsz);
    at = text + padded(note.n_descsz);
  }
}

void RemoteModule::read_dynamic(const RemoteMemory& memory, const Elf64_Phdr& segment) {
  dynamic_ = bias_ + segment.p_vaddr;
  dynamic_entries_.resize(std::min<std::uint64_t>(segment.p_memsz, 64 * 1024) / sizeof(Elf64_Dyn));
  const std::uint64_t bytes = dynamic_entries_.size() * sizeof(Elf64_Dyn);
  if (!memory.read(dynamic_, dynamic_entries_.data(), bytes)) dynamic_entries_.clear();
  const auto end = std::ranges::find(dynamic_entries_, DT_NULL, &Elf64_Dyn::d_tag);
  dynamic_entries_.erase(end, dynamic_entries_.end());
  read_symbols(memory);
}

std::optional<std::uint64_t> RemoteModule::dynamic_value(std::int64_t tag) const {
  const auto entry = std::ranges::find(dynamic_entries_, tag, &Elf64_Dyn::d_tag);
  return entry != dynamic_entries_.end() ? std::optional{entry->d_un.d_val} : std::nullopt;
}

std::uint64_t RemoteModule::dynamic_address(std::int64_t tag) const {
  const std::uint64_t address = dynamic_value(tag).value_or(0);
  // glibc adds the bias when it loads the module, except in the vDSO.
  return address != 0 && address < start_ ? address + bias_ : address;
}

void RemoteModule::read_symbols(const RemoteMemory& memory) {
  const std::uint64_t symbols = dynamic_address(DT_SYMTAB), strings = dynamic_address(DT_STRTAB);
  const std::uint64_t string_bytes = dynamic_value(DT_STRSZ).value_or(0);
  const std::uint64_t gnu_hash = dynamic_address(DT_GNU_HASH);
  const std::uint64_t sysv_hash = dynamic_address(DT_HASH);
  if (symbols == 0 || strings == 0 || string_bytes > kMostSymbolBytes) return;
  const std::uint64_t count = gnu_hash != 0    ? count_by_gnu_hash(memory, gnu_hash)
                              : sysv_hash != 0 ? count_by_sysv_hash(memory, sysv_hash)
                                               : 0;
  if (count == 0 || count > kMostSymbolBytes / sizeof(Elf64_Sym)) return;
  std::vector<Elf64_Sym> table(count);
  std::string names(string_bytes, '\0');
  if (!memory.read(symbols, table.data(), count * sizeof(Elf64_Sym)) ||
      !memory.read(strings, names.data(), string_bytes))
    return;
  for (const Elf64_Sym& symbol : table) {
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size() ||
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT))
      continue;
    symbols_.push_back({bias_ + symbol.st_value, symbol.st_size, names.c_str() + symbol.st_name});
  }
  std::ranges::stable_sort(symbols_, {}, &RemoteSymbol::address);
}

std::uint64_t RemoteModule::address_of(std::string_view name) const {
  for (const RemoteSymbol& symbol : symbols_)
    if (symbol.name == name) return symbol.address;
  return 0;
}

const RemoteSymbol* RemoteModule::symbol_at(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(symbols_, address, {}, &RemoteSymbol::address);
  if (after == symbols_.begin()) return nullptr;
  const RemoteSymbol& symbol = *std::prev(after);
  return address < symbol.address + symbol.bytes ? &symbol : nullptr;
}

std::vector<RemoteModule> remote_modules(const RemoteMemory& memory) {
  const auto loaded = loaded_dynamic_sections(memory).value_or(std::vector<std::uint64_t>{});
  std::vector<RemoteModule> modules;
  for (const RemoteMapping& mapping : memory.mappings()) {
    char magic[SELFMAG];
    if (mapping.offset != 0 || !mapping.readable || !mapping.path.starts_with('/') ||
        !memory.read(mapping.start, magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
      continue;
    if (!modules.empty() && modules.back().contains(mapping.start)) continue;
    RemoteModule module{memory, mapping.start, mapping.path};
    const bool is_loaded =
        loaded.empty() || std::ranges::find(loaded, module.dynamic_section()) != loaded.end();
    if (is_loaded && module.end() != module.start()) modules.push_back(std::move(module));
  }
  return modules;
}

namespace {

constexpr std::size_t kMostModules = 100'000;  // a list that is being changed may have no end
constexpr std::size_t kMostNamespaces = 64;    // of dlmopen; glibc has 16

// Where the loader is mapped. A loader that was run by name (ld.so PROGRAM) is to the kernel the
// program itself, and has its program headers in its first page.
std::uint64_t loader_start(const RemoteMemory& memory) {
  if (const auto base = memory.auxiliary_value(AT_BASE); base.value_or(0) != 0) return *base;
  return memory.auxiliary_value(AT_PHDR).value_or(0) & ~std::uint64_t{4095};
}

}  // namespace

std::optional<std::vector<std::uint64_t>> loaded_dynamic_sections(const RemoteMemory& memory) {
  // glibc's r_debug; from 2.35 on, one for each namespace, chained.
  struct {
    ::r_debug base;
    std::uint64_t next;
  } debug{};
  std::uint64_t at = RemoteModule{memory, loader_start(memory), {}}.address_of("_r_debug");
  if (at == 0) return std::nullopt;
  std::vector<std::uint64_t> sections;
  for (std::size_t names = 0; at != 0 && names < kMostNamespaces; ++names) {
    if (!memory.read(at, debug) || debug.base.r_state != ::r_debug::RT_CONSISTENT)
      return std::vector<std::uint64_t>{};
    auto next = reinterpret_cast<std::uint64_t>(debug.base.r_map);
    while (next != 0) {
      ::link_map module{};
      if (!memory.read(next, module) || sections.size() == kMostModules)
        return std::vector<std::uint64_t>{};
      sections.push_back(reinterpret_cast<std::uint64_t>(module.l_ld));
      next = reinterpret_cast<std::uint64_t>(module.l_next);
    }
    at = debug.base.r_version >= 2 ? debug.next : 0;
  }
  return sections;
}

}  // namespace oomrec::tools::processes
