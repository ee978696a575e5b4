// The functions of one module by address, from its symbol table.
//
// libdwfl's own look-up goes through the whole table for each address: for a library with half a
// million symbols and a recording with ten thousands of addresses in it that is minutes.
#pragma once

#include <elfutils/libdwfl.h>

#include <vector>

namespace oomrec::tools::recording {

class SymbolTable {
 public:
  // Reads the table; `module` and its file must outlive this.
  explicit SymbolTable(Dwfl_Module* module);

  // The mangled name of the function that holds `address` (of libdwfl's); nullptr: none.
  const char* function_at(GElf_Addr address) const;

 private:
  struct Symbol {
    GElf_Addr start;
    GElf_Xword bytes;  // 0: not known
    const char* name;
    int rank;  // of several with one start: the last one wins
  };
  std::vector<Symbol> symbols_;  // by start, then rank
};

}  // namespace oomrec::tools::recording
