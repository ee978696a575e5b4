// The functions of a module's symbol table, sorted by address.
//
// libdwfl scans the whole table for each address. With half a million symbols in a library, and
// tens of thousands of its addresses in a recording, that takes minutes.
#pragma once

#include <elfutils/libdwfl.h>

#include <vector>

namespace oomrec::tools::recording {

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
