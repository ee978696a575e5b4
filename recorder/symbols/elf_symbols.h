// The exported names of a loaded module, read from its own .dynsym in memory: name → address for
// finding an interpreter, pc → name for the report and the bundle.
//
// No loader call, no lock, no allocation, no file. Every read is checked against the module's own
// readable segments. With a `window` the reads go through process_vm_readv on our own process: a
// module that another thread unmaps meanwhile costs the answer, never a fault. Without one the
// caller must ensure that the module stays loaded (its code is running, or it was loaded at start).
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::symbols {

class ElfSymbols {
 public:
  // `start`: where the module's ELF header is mapped, as in session::Module. A window of 4 KiB is
  // enough; a larger one saves system calls in libraries with 100,000 symbols.
  ElfSymbols(InHook, std::uint64_t start, std::span<std::byte> window = {}) noexcept;

  bool valid() const noexcept { return symbols_ != 0; }

  // Address of the symbol that the module defines under `name`, 0 when it defines none. By its
  // hash table, of GNU's kind or the older one (DT_HASH): a few reads.
  std::uint64_t address_of(InHook, std::string_view name, std::uint64_t* bytes = nullptr) noexcept;

  // Writes the NUL-terminated name of the exported function that holds `pc` (an address inside an
  // instruction: for a return address pass pc - 1), cut to `capacity`. `offset`: pc − its start.
  // Of several names for one address the plainest wins. False: none. Cost: one pass over .dynsym.
  bool name_at(InHook, std::uint64_t pc, char* name, std::size_t capacity,
               std::uint64_t& offset) noexcept;

 private:
  struct Segment {
    std::uint64_t start, end;
  };
  static constexpr std::size_t kMaxSegments = 12;

  bool read(std::uint64_t address, void* out, std::size_t bytes) noexcept;
  template <class T>
  bool read(std::uint64_t address, T& out) noexcept {
    return read(address, &out, sizeof(T));
  }
  bool read_program_headers(std::uint64_t start) noexcept;
  bool read_dynamic_section(std::uint64_t address, std::uint64_t bytes) noexcept;
  std::uint32_t symbol_count() noexcept;
  bool find_by_gnu_hash(std::string_view name, Elf64_Sym& symbol) noexcept;
  bool find_by_sysv_hash(std::string_view name, Elf64_Sym& symbol) noexcept;
  bool defines(std::uint32_t index, std::string_view name, Elf64_Sym& symbol) noexcept;
  bool name_equals(std::uint32_t name_offset, std::string_view name) noexcept;
  std::size_t copy_name(std::uint32_t name_offset, char* out, std::size_t capacity) noexcept;

  std::span<std::byte> window_;
  std::uint64_t window_start_ = 0;
  std::size_t window_bytes_ = 0;
  Segment segments_[kMaxSegments];
  std::size_t segment_count_ = 0;
  std::uint64_t bias_ = 0;
  std::uint64_t symbols_ = 0;
  std::uint64_t strings_ = 0;
  std::uint64_t string_bytes_ = 0;
  std::uint64_t gnu_hash_ = 0;
  std::uint64_t sysv_hash_ = 0;
};

// Copies `bytes` bytes at `address` of our own process; false instead of a fault. One system call.
bool read_own_memory(InHook, std::uint64_t address, void* out, std::size_t bytes) noexcept;

// Names of functions, for callers that ask about one module many times in a row. A member of static
// or zeroed memory: has no constructor. A larger window saves system calls (ElfSymbols).
template <std::size_t kWindowBytes>
struct ModuleNames {
  // ElfSymbols::name_at() in the module whose ELF header is mapped at `module`.
  bool name_at(InHook hook, std::uint64_t module, std::uint64_t pc, char* name,
               std::size_t capacity) noexcept {
    if (start != module) {
      new (symbols) ElfSymbols{hook, module, window};
      start = module;
    }
    auto& names = *std::launder(reinterpret_cast<ElfSymbols*>(symbols));
    std::uint64_t offset = 0;
    return names.valid() && names.name_at(hook, pc, name, capacity, offset);
  }

  // Another module may be mapped at the same address by now.
  void forget() noexcept { start = 0; }

  std::uint64_t start;  // of the module that was read last; 0: none
  alignas(ElfSymbols) std::byte symbols[sizeof(ElfSymbols)];
  alignas(8) std::byte window[kWindowBytes];
};

}  // namespace oomrec::symbols
