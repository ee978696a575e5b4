// Symbolizes addresses of one ELF file: functions, inlined calls, source files and lines.
//
// The file is used only if its build-id is the recorded one: another build would silently give
// wrong names. Debug information comes from the file, and from the files that its .gnu_debuglink
// and build-id name (debug_files.h). If the file is gone, only the build-id is left to find one.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace oomrec::tools::recording {

struct LineInfo {
  std::string function;    // demangled; empty: unknown
  std::string file;        // empty: unknown
  std::uint32_t line = 0;  // 0: unknown
  bool inlined = false;    // into the next LineInfo
};

class ModuleSymbols {
 public:
  // nullptr: the file is missing, not ELF or another build, and there is no debug file of the
  // recorded build either.
  static std::unique_ptr<ModuleSymbols> open(const std::string& path,
                                             std::span<const std::uint8_t> build_id);
  ~ModuleSymbols();
  ModuleSymbols(const ModuleSymbols&) = delete;
  ModuleSymbols& operator=(const ModuleSymbols&) = delete;

  // The lines at a link-time address, innermost first; empty: unknown.
  std::vector<LineInfo> find(std::uint64_t address);

  // Identifies the files that find() reads: the text changes when one of them appears, disappears
  // or changes. Cost: a search for separate debug files, without reading them.
  std::string sources() const;
  // False: the debug information refers to a supplementary file that is missing (DWARF 5, 7.3.6).
  // With it, find() would return more.
  bool is_complete() const;

 private:
  struct State;
  explicit ModuleSymbols(std::unique_ptr<State> state);
  static std::unique_ptr<ModuleSymbols> open_file(const std::string& path,
                                                  std::span<const std::uint8_t> build_id);
  std::unique_ptr<State> state_;
};

// The functions of a module's symbol table, sorted by address.
//
// libdwfl scans the whole table for each address. With half a million symbols in a library, and
// tens of thousands of its addresses in a recording, that takes minutes.
class SymbolTable {
 public:
  // Reads the table; `module` and its file must outlive this.
  explicit SymbolTable(Dwfl_Module* module);

  // The mangled name of the function at `address` (libdwfl's, with its bias); nullptr: none.
  const char* function_at(GElf_Addr address) const;

 private:
  struct Symbol {
    GElf_Addr start;
    GElf_Xword bytes;  // 0: unknown
    const char* name;
    int rank;  // among symbols with the same start; the highest wins
  };
  std::vector<Symbol> symbols_;  // by start, then rank
};

}  // namespace oomrec::tools::recording
