// A module loaded in another process: its segments and exported symbols, read from its memory. The
// file may be in another container, or deleted.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/processes/attach/remote_memory.h"

namespace oomrec::tools::processes {

struct RemoteSymbol {
  std::uint64_t address = 0, bytes = 0;
  std::string name;
};

class RemoteModule {
 public:
  // `start`: where its ELF header is mapped.
  RemoteModule(const RemoteMemory& memory, std::uint64_t start, std::string path);

  const std::string& path() const { return path_; }
  std::string_view file_name() const;
  std::uint64_t start() const { return start_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t bias() const { return bias_; }  // what is added to the addresses of its file
  bool contains(std::uint64_t address) const { return start_ <= address && address < end_; }

  std::uint64_t dynamic_section() const { return dynamic_; }
  // The value of an entry of that section, such as DT_STRSZ; nullopt: there is none.
  std::optional<std::uint64_t> dynamic_value(std::int64_t tag) const;
  // The same of an entry that is an address; 0: there is none.
  std::uint64_t dynamic_address(std::int64_t tag) const;

  // 0: it has none of this name.
  std::uint64_t address_of(std::string_view name) const;
  const std::vector<RemoteSymbol>& symbols() const { return symbols_; }  // exported, by address
  // The exported symbol at this address; nullptr: none.
  const RemoteSymbol* symbol_at(std::uint64_t address) const;

  // Of its GNU build-id note; empty: it has none.
  const std::string& build_id() const { return build_id_; }

  // Memory behind the code of an executable segment up to the end of its page, that nothing uses.
  struct Gap {
    std::uint64_t address = 0, bytes = 0;
  };
  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  void read_segments(const RemoteMemory& memory);
  void read_notes(const RemoteMemory& memory, std::uint64_t address, std::uint64_t bytes);
  void read_dynamic(const RemoteMemory& memory, const Elf64_Phdr& segment);
  void read_symbols(const RemoteMemory& memory);

  std::string path_, build_id_;
  std::uint64_t start_ = 0, end_ = 0, bias_ = 0, dynamic_ = 0;
  std::vector<Elf64_Dyn> dynamic_entries_;
  std::vector<RemoteSymbol> symbols_;  // by address
  std::vector<Gap> gaps_;
};

// All modules that the loader has loaded, in order of their addresses. Symbols of each are read:
// some ms for a large program.
std::vector<RemoteModule> remote_modules(const RemoteMemory& memory);

// What the loader of another process says that it has loaded.
//
// A file in memory may be a C library that nothing calls: a program that reads symbols maps it as
// data, an emulator maps its guest's.

// The addresses of the dynamic sections of all loaded modules. Empty: the loader has just begun, or
// changes its list now. nullopt: the process has no loader, so that it is statically linked.
std::optional<std::vector<std::uint64_t>> loaded_dynamic_sections(const RemoteMemory& memory);

// The variables of a module in another process, word by word.
enum class Variables : bool { all, writable };

// visit(address, value) for each word of 8 bytes that is mapped readable, and not executable. A
// large segment that is not writable is left out: it is code for a GPU, or other data of the file.
template <class Visit>
void for_each_variable(const RemoteMemory& memory, const std::vector<RemoteMapping>& mappings,
                       const RemoteModule& module, Variables which, Visit visit) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMostConstantBytes = std::uint64_t{64} << 20;
  std::vector<std::uint64_t> words(kPieceBytes / sizeof(std::uint64_t));
  for (const RemoteMapping& mapping : mappings) {
    if (mapping.executable || !mapping.readable ||
        (!mapping.writable &&
         (which == Variables::writable || mapping.end - mapping.start > kMostConstantBytes)))
      continue;
    const std::uint64_t end = std::min(mapping.end, module.end());
    for (std::uint64_t at = std::max(mapping.start, module.start()); at < end; at += kPieceBytes) {
      const std::uint64_t bytes = std::min(kPieceBytes, end - at);
      const std::uint64_t count = memory.read_some(at, words.data(), bytes) / sizeof words[0];
      for (std::uint64_t i = 0; i < count; ++i) visit(at + i * sizeof words[0], words[i]);
    }
  }
}

}  // namespace oomrec::tools::processes
