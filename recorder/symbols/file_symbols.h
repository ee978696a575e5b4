// The symbol table (.symtab) of a loaded module's file: names and addresses that the module does
// not export, as of libjvm. Once, when the process is about to end.
//
// No allocation, no lock. Maps the file for as long as the object lives; every offset in it is
// checked. A file that is not the loaded module (replaced, or of another root) is rejected by its
// first page, which holds the headers and, as linkers place it, the build id.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::symbols {

class FileSymbols {
 public:
  // `start`: where the module's ELF header is mapped. `path` is NUL-terminated.
  FileSymbols(InHook, const char* path, std::uint64_t start) noexcept;
  ~FileSymbols();
  FileSymbols(const FileSymbols&) = delete;
  FileSymbols& operator=(const FileSymbols&) = delete;

  bool valid() const noexcept { return !symbols_.empty(); }
  std::size_t count() const noexcept { return symbols_.size(); }

  // Both take and return values as in the file: an address less the module's load bias. Cost: one
  // pass over the table.
  std::string_view function_at(std::uint64_t value) const noexcept;
  std::uint64_t value_of(std::string_view name) const noexcept;  // 0: none

 private:
  bool find_table() noexcept;
  template <class T>
  std::span<const T> array_at(std::uint64_t offset, std::uint64_t count) const noexcept;
  std::string_view name_of(const Elf64_Sym&) const noexcept;

  const std::byte* file_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::span<const Elf64_Sym> symbols_;
  std::span<const char> strings_;
};

// Writes the NUL-terminated name of the module's function at `value`, from the file at `path`, or,
// if that is not the loaded module, from the running executable, which may have been deleted.
// False: none, or the table has more than 32,768 symbols, which would take too long. About 150 µs.
bool name_in_file(InHook, const char* path, std::uint64_t start, std::uint64_t value, char* name,
                  std::size_t capacity) noexcept;

}  // namespace oomrec::symbols
