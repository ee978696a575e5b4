// Names of functions, for callers that ask about one module many times in a row. A member of static
// or zeroed memory: has no constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "recorder/symbols/elf_symbols.h"

namespace oomrec::symbols {

// A larger window saves system calls (ElfSymbols).
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
