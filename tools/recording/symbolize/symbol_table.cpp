#include "tools/recording/symbolize/symbol_table.h"

#include <algorithm>
#include <tuple>

namespace oomrec::tools::recording {
namespace {

// As libdwfl prefers them: global, weak, local.
int rank_of(const GElf_Sym& symbol) {
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
      return 2;
    case STB_WEAK:
      return 1;
    default:
      return 0;
  }
}

bool may_be_code(const GElf_Sym& symbol) {
  const int type = GELF_ST_TYPE(symbol.st_info);
  return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

}  // namespace

SymbolTable::SymbolTable(Dwfl_Module* module) {
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr start = 0;
    GElf_Word section = SHN_UNDEF;
    const char* const name =
        dwfl_module_getsym_info(module, i, &symbol, &start, &section, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || section == SHN_UNDEF || !may_be_code(symbol)) continue;
    symbols_.push_back({start, symbol.st_size, name, rank_of(symbol)});
  }
  std::stable_sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    return std::tie(a.start, a.rank) < std::tie(b.start, b.rank);
  });
}

const char* SymbolTable::function_at(GElf_Addr address) const {
  auto at = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](GElf_Addr a, const Symbol& symbol) { return a < symbol.start; });
  // A symbol that ends before the address may be nested: an enclosing function begins earlier.
  constexpr int kNeighbours = 16;
  for (int left = kNeighbours; left > 0 && at != symbols_.begin(); --left) {
    --at;
    if (at->bytes == 0 || address - at->start < at->bytes) return at->name;
  }
  return nullptr;
}

}  // namespace oomrec::tools::recording
