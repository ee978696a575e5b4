#include "tools/recording/symbolize/module_symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "tools/recording/symbolize/address_ranges.h"
#include "tools/recording/symbolize/debug_files.h"
#include "tools/recording/symbolize/function_name.h"

namespace oomrec::tools::recording {
namespace {

// Calls visit(child) for each child of `die`.
template <class Visit>
void for_children(Dwarf_Die* die, Visit visit) {
  Dwarf_Die child;
  if (dwarf_child(die, &child) != 0) return;
  do visit(&child);
  while (dwarf_siblingof(&child, &child) == 0);
}

// Functions are children of units, namespaces and classes. A forged file may nest these too deeply.
void add_functions(Dwarf_Die* die, std::vector<AddressRange>& functions, int depth = 0) {
  if (depth > 64) return;
  for_children(die, [&](Dwarf_Die* child) {
    switch (dwarf_tag(child)) {
      case DW_TAG_subprogram:
        add_ranges(child, functions);
        break;
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
        add_functions(child, functions, depth + 1);
        break;
      default:
        break;
    }
  });
}

// Adds the inlined calls that cover `address`, outermost first.
void add_inlined(Dwarf_Die* scope, Dwarf_Addr address, std::vector<Dwarf_Die>& chain,
                 int depth = 0) {
  if (depth > 256) return;
  bool found = false;
  for_children(scope, [&](Dwarf_Die* child) {
    const int tag = dwarf_tag(child);
    const bool inner = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
    if (found || !inner || dwarf_haspc(child, address) != 1) return;
    found = true;
    if (tag == DW_TAG_inlined_subroutine) chain.push_back(*child);
    add_inlined(child, address, chain, depth + 1);
  });
}

const char* linkage_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, name, &attribute) != nullptr) return dwarf_formstring(&attribute);
  }
  return nullptr;
}

std::string function_name(Dwarf_Die* die) {
  if (const char* linkage = linkage_name(die)) return demangled(linkage);
  Dwarf_Attribute attribute;
  const char* plain = dwarf_attr_integrate(die, DW_AT_name, &attribute) != nullptr
                          ? dwarf_formstring(&attribute)
                          : nullptr;
  return plain != nullptr ? demangled(plain) : "";
}

// Sets file and line of the call of an inlined function in `unit`.
void set_call_line(Dwarf_Die* unit, Dwarf_Die* inlined, LineInfo& caller) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  Dwarf_Files* files = nullptr;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &value) == 0) {
    caller.line = static_cast<std::uint32_t>(value);
  }
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &value) == 0 &&
      dwarf_getsrcfiles(unit, &files, nullptr) == 0) {
    if (const char* file = dwarf_filesrc(files, value, nullptr, nullptr)) caller.file = file;
  }
}

}  // namespace

struct ModuleSymbols::State : OpenModule {
  explicit State(const std::string& file_path) : OpenModule(file_path), path(file_path) {}

  const std::string path;
  Dwarf* dwarf = nullptr;
  Dwarf_Addr dwarf_bias = 0;
  bool indexed = false;
  std::vector<AddressRange> units;
  std::unordered_map<Dwarf_Off, std::vector<AddressRange>> functions;  // by unit
  std::optional<SymbolTable> symbols;

  void index_units() {
    indexed = true;
    dwarf = dwfl_module_getdwarf(module, &dwarf_bias);
    if (dwarf == nullptr) return;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    Dwarf_Die sub_die;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, &sub_die) == 0) {
      add_ranges(&die, units);
    }
    sort_ranges(units);
  }

  const std::vector<AddressRange>& functions_of(Dwarf_Die* unit) {
    const auto [at, is_new] = functions.try_emplace(dwarf_dieoffset(unit));
    if (is_new) {
      add_functions(unit, at->second);
      sort_ranges(at->second);
    }
    return at->second;
  }

  std::vector<LineInfo> from_dwarf(std::uint64_t file_address) {
    if (!indexed) index_units();
    const Dwarf_Addr address = file_address + bias - dwarf_bias;
    const AddressRange* unit_range = find_range(units, address);
    Dwarf_Die unit;
    if (unit_range == nullptr || dwarf_offdie(dwarf, unit_range->die, &unit) == nullptr) return {};

    LineInfo innermost;
    if (Dwarf_Line* line = dwarf_getsrc_die(&unit, address)) {
      int number = 0;
      if (dwarf_lineno(line, &number) == 0) innermost.line = static_cast<std::uint32_t>(number);
      if (const char* file = dwarf_linesrc(line, nullptr, nullptr)) innermost.file = file;
    }
    const AddressRange* function_range = find_range(functions_of(&unit), address);
    Dwarf_Die function;
    if (function_range == nullptr ||
        dwarf_offdie(dwarf, function_range->die, &function) == nullptr) {
      return {};
    }
    std::vector<Dwarf_Die> chain = {function};
    add_inlined(&function, address, chain);

    std::vector<LineInfo> lines;
    LineInfo current = innermost;
    for (auto die = chain.rbegin(); die != chain.rend(); ++die) {
      current.function = function_name(&*die);
      current.inlined = dwarf_tag(&*die) == DW_TAG_inlined_subroutine;
      lines.push_back(current);
      current = LineInfo{};
      if (lines.back().inlined) set_call_line(&unit, &*die, current);
    }
    return lines;
  }

  std::string from_symbol_table(std::uint64_t file_address) {
    if (!symbols) symbols.emplace(module);
    const char* const name = symbols->function_at(file_address + bias);
    return name != nullptr ? demangled(name) : std::string{};
  }
};

ModuleSymbols::ModuleSymbols(std::unique_ptr<State> state) : state_(std::move(state)) {}
ModuleSymbols::~ModuleSymbols() = default;

std::unique_ptr<ModuleSymbols> ModuleSymbols::open(const std::string& path,
                                                   std::span<const std::uint8_t> build_id) {
  if (!path.starts_with('/')) return nullptr;
  auto symbols = open_file(path, build_id);
  return symbols != nullptr ? std::move(symbols) : open_file(debug_file_of(build_id), build_id);
}

std::unique_ptr<ModuleSymbols> ModuleSymbols::open_file(const std::string& path,
                                                        std::span<const std::uint8_t> build_id) {
  if (path.empty()) return nullptr;
  auto state = std::make_unique<State>(path);
  if (state->module == nullptr) return nullptr;
  const unsigned char* found = nullptr;
  GElf_Addr address = 0;
  const int length = dwfl_module_build_id(state->module, &found, &address);
  const bool same = length == static_cast<int>(build_id.size()) &&
                    std::equal(build_id.begin(), build_id.end(), found);
  if (!build_id.empty() && !same) return nullptr;
  return std::unique_ptr<ModuleSymbols>{new ModuleSymbols{std::move(state)}};
}

std::vector<LineInfo> ModuleSymbols::find(std::uint64_t address) {
  std::vector<LineInfo> lines = state_->from_dwarf(address);
  if (lines.empty()) lines.push_back({state_->from_symbol_table(address), "", 0, false});
  LineInfo& outermost = lines.back();
  if (outermost.function.empty()) outermost.function = state_->from_symbol_table(address);
  if (lines.size() == 1 && outermost.function.empty() && outermost.file.empty()) return {};
  return lines;
}

std::string ModuleSymbols::sources() const { return sources_of(state_->path); }

bool ModuleSymbols::is_complete() const {
  const char* name = nullptr;
  const void* build_id = nullptr;
  return state_->dwarf == nullptr ||
         dwelf_dwarf_gnu_debugaltlink(state_->dwarf, &name, &build_id) <= 0 ||
         dwarf_getalt(state_->dwarf) != nullptr;
}

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
  std::ranges::stable_sort(symbols_, [](const Symbol& a, const Symbol& b) {
    return std::tie(a.start, a.rank) < std::tie(b.start, b.rank);
  });
}

const char* SymbolTable::function_at(GElf_Addr address) const {
  auto at = std::ranges::upper_bound(symbols_, address, {}, &Symbol::start);
  // A symbol that ends before the address may be nested: an enclosing function begins earlier.
  constexpr int kNeighbours = 16;
  for (int left = kNeighbours; left > 0 && at != symbols_.begin(); --left) {
    --at;
    if (at->bytes == 0 || address - at->start < at->bytes) return at->name;
  }
  return nullptr;
}

}  // namespace oomrec::tools::recording
