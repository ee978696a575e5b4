#include "shim/interpose/redirections.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <utility>

#include "common/machine/page.h"
#include "common/machine/platform.h"
#include "common/system/hook_scope.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"
#include "recorder/symbols/elf_symbols.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"
#include "shim/interpose/writable_pages.h"

namespace oomrec::shim {
namespace {

struct Redirection {
  const char* name;
  std::uint64_t next, hook;
  std::uint64_t outside;  // calls from the module that starts here stay as they are; 0: of none
};

// Other threads may read a table that is published, so it stays as it is.
struct Table {
  static constexpr std::size_t kMost = 1024;
  Redirection rows[kMost];
  std::size_t count;
  Table* older;  // published before

  void add(const char* name, const void* next, const void* hook, const void* outside) noexcept {
    if (next == nullptr || hook == nullptr || next == hook || count == kMost) return;
    rows[count++] = {name, reinterpret_cast<std::uint64_t>(next),
                     reinterpret_cast<std::uint64_t>(hook),
                     reinterpret_cast<std::uint64_t>(outside)};
  }
  void sort() noexcept {
    std::sort(rows, rows + count,
              [](const Redirection& a, const Redirection& b) { return a.next < b.next; });
  }
  const Redirection* by_next(std::uint64_t address) const noexcept {
    const Redirection* const found = std::lower_bound(
        rows, rows + count, address,
        [](const Redirection& row, std::uint64_t wanted) { return row.next < wanted; });
    return found != rows + count && found->next == address ? found : nullptr;
  }
  const Redirection* by_hook(std::uint64_t address) const noexcept {
    return find([=](const Redirection& row) { return row.hook == address; });
  }
  const Redirection* by_name(const char* name) const noexcept {
    return find([=](const Redirection& row) { return ::strcmp(row.name, name) == 0; });
  }
  // What a word with this value is to have; 0: it leads to no function of the table. `from`: the
  // start of the module that has the word.
  std::uint64_t target_of(std::uint64_t value, Direction direction,
                          std::uint64_t from = 0) const noexcept {
    const bool to_hooks = direction == Direction::to_hooks;
    const Redirection* const row = to_hooks ? by_next(value) : by_hook(value);
    if (row == nullptr) return 0;
    return !to_hooks ? row->next : from != 0 && row->outside == from ? 0 : row->hook;
  }

 private:
  template <class Is>
  const Redirection* find(Is is) const noexcept {
    const Redirection* const end = rows + count;
    const Redirection* const found = std::find_if(rows, end, is);
    return found == end ? nullptr : found;
  }
};

struct Redirections {
  std::atomic<Table*> published{nullptr};
  Table* filling = nullptr;  // by the thread that has set `is_filling`
  std::atomic<bool> is_filling{false};
  LaterLibraries later{};
  std::atomic<std::uint64_t> later_loaded{0};
  std::atomic<unsigned long long> adds{0};  // of modules that were looked at: dlpi_adds
  std::atomic<bool> in_force{false};        // calls are redirected
};
constinit Redirections g_redirections{};

// Where this library's ELF header is mapped.
std::uint64_t own_start() noexcept {
  Dl_info info{};
  ::dladdr(&g_redirections, &info);
  return reinterpret_cast<std::uint64_t>(info.dli_fbase);
}

// nullptr: there is no memory for it.
Table* new_table(Table* from) noexcept {
  auto* const table = static_cast<Table*>(system::map_private(sizeof(Table)));
  if (table == nullptr) return nullptr;
  if (from != nullptr) {
    std::copy(from->rows, from->rows + from->count, table->rows);
    table->count = from->count;
    table->older = from;
  }
  return table;
}

// No thread is in the library, other than this one: the recording has not begun.
void free_tables() noexcept {
  Table* table = g_redirections.published.exchange(nullptr, std::memory_order_relaxed);
  while (table != nullptr) {
    Table* const older = table->older;
    system::unmap(table, sizeof(Table));
    table = older;
  }
}

void publish_table() noexcept {
  if (g_redirections.filling == nullptr) return;
  g_redirections.filling->sort();
  g_redirections.published.store(g_redirections.filling, std::memory_order_release);
  g_redirections.filling = nullptr;
}

// If another thread does it right now, the next pass has the functions.
void add_functions_loaded_later() noexcept {
  if (g_redirections.later.loaded == nullptr) return;
  const std::uint64_t loaded = g_redirections.later.loaded();
  if (loaded == g_redirections.later_loaded.load(std::memory_order_relaxed) ||
      g_redirections.is_filling.exchange(true, std::memory_order_acquire))
    return;
  g_redirections.filling = new_table(g_redirections.published.load(std::memory_order_relaxed));
  g_redirections.later.add();
  publish_table();
  g_redirections.later_loaded.store(loaded, std::memory_order_relaxed);
  g_redirections.is_filling.store(false, std::memory_order_release);
}

void add_exported(Table& table, const char* name, const void* next, const char* exported,
                  const void* outside = nullptr) noexcept {
  if (next == nullptr || is_absent(next)) return;
  const InHook hook = OutsideHooks::in_hook();
  symbols::ElfSymbols own{hook, own_start()};
  table.add(name, next, reinterpret_cast<const void*>(own.address_of(hook, exported)), outside);
}

void add_hooked_functions(Table& table) noexcept {
#define X(result, name, parameters, arguments) \
  add_exported(table, #name, reinterpret_cast<const void*>(g_next.name), #name);
  OOMREC_NEXT_FUNCTIONS(X)
#undef X
#define X(name) add_exported(table, #name, next_definition(#name), #name);
  OOMREC_OTHER_ENTERED_FUNCTIONS(X)
#undef X
  add_exported(table, "dlsym", next_definition("dlsym"), "dlsym");
}

// The table of a program that started with this library: filled at the first need, and never
// changed. Two threads may do so at once. nullptr: there is no memory for it.
const Table* table_of_preloaded() noexcept {
  Table* published = g_redirections.published.load(std::memory_order_acquire);
  if (published != nullptr) return published;
  Table* const table = new_table(nullptr);
  if (table == nullptr) return nullptr;
  add_hooked_functions(*table);
  table->sort();
  if (g_redirections.published.compare_exchange_strong(published, table, std::memory_order_acq_rel))
    return table;
  system::unmap(table, sizeof(Table));
  return published;
}

// A range of all real functions, or of all hooks: most words are outside of it.
struct Bounds {
  std::uint64_t low = UINT64_MAX, high = 0;
  void add(std::uint64_t address) noexcept {
    low = std::min(low, address);
    high = std::max(high, address);
  }
  bool contain(std::uint64_t address) const noexcept { return low <= address && address <= high; }
};

// The parts of a loaded module that this needs.
struct Module {
  std::uint64_t bias = 0, start = UINT64_MAX, end = 0;
  std::uint64_t relro_start = 0, relro_end = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Dyn) * dynamic = nullptr;
  const ElfW(Rela) * tables[2] = {};
  std::size_t counts[2] = {};

  explicit Module(const dl_phdr_info& info) noexcept : bias(info.dlpi_addr) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info.dlpi_phdr[i];
      const std::uint64_t at = bias + header.p_vaddr;
      if (header.p_type == PT_LOAD) {
        start = std::min(start, machine::page_down(at));
        end = std::max(end, at + header.p_memsz);
      } else if (header.p_type == PT_DYNAMIC) {
        dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
      } else if (header.p_type == PT_GNU_RELRO) {
        relro_start = machine::page_down(at);
        relro_end = machine::page_down(at + header.p_memsz);
      }
    }
    for (const ElfW(Dyn)* entry = dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry)
      read(*entry);
  }

  bool valid() const noexcept { return symbols != nullptr && strings != nullptr; }
  const char* name() const noexcept { return strings + name_offset_; }  // "": it has none
  bool is_relro(std::uint64_t address) const noexcept {
    return relro_start <= address && address < relro_end;
  }

 private:
  std::uint64_t name_offset_ = 0;  // DT_SONAME; strings begin with an empty one

  // glibc adds the bias to these addresses when it loads the module, except in the vDSO.
  std::uint64_t at(std::uint64_t address) const noexcept {
    return address < start ? address + bias : address;
  }
  void read(const ElfW(Dyn) & entry) noexcept {
    switch (entry.d_tag) {
      case DT_SYMTAB:
        symbols = reinterpret_cast<const ElfW(Sym)*>(at(entry.d_un.d_ptr));
        break;
      case DT_STRTAB:
        strings = reinterpret_cast<const char*>(at(entry.d_un.d_ptr));
        break;
      case DT_SONAME:
        name_offset_ = entry.d_un.d_val;
        break;
      case DT_JMPREL:
        tables[0] = reinterpret_cast<const ElfW(Rela)*>(at(entry.d_un.d_ptr));
        break;
      case DT_RELA:
        tables[1] = reinterpret_cast<const ElfW(Rela)*>(at(entry.d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        counts[0] = entry.d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_RELASZ:
        counts[1] = entry.d_un.d_val / sizeof(ElfW(Rela));
        break;
    }
  }
};

// A library that was opened with RTLD_DEEPBIND, and the modules that were loaded for it: those
// whose words the loader will bind in the order in which it searches the library's handle.
class DeepBound {
 public:
  // nullptr: not known.
  DeepBound(const Table& table, void* library) noexcept
      : table_(table), library_(static_cast<const link_map*>(library)) {
    if (library == nullptr) return;
    for (std::size_t i = 0; i < table.count; ++i)
      are_next_[i] = reinterpret_cast<std::uint64_t>(real_dlsym()(library, table.rows[i].name)) ==
                     table.rows[i].next;
  }

  // Whether a module is one of them. Asked in the loader's order, in which the library comes first
  // and each module before what is loaded for it; the loader's lock keeps them there meanwhile.
  bool contains(const dl_phdr_info& info, const Module& module) noexcept {
    if (library_ == nullptr) return false;
    const bool is_library =
        info.dlpi_addr == library_->l_addr && info.dlpi_name == library_->l_name;
    if (!is_library && !is_needed(info.dlpi_name, module.name())) return false;
    if (count_ < kMost) found_[count_++] = {module.dynamic, module.strings};
    return true;
  }

  // Whether a word that is not bound yet will lead to the function that the row's hook calls.
  bool leads_to_next(const Redirection& row) const noexcept {
    return are_next_[static_cast<std::size_t>(&row - table_.rows)];
  }

 private:
  static constexpr std::size_t kMost = 64;  // of the others nothing is needed
  struct Found {
    const ElfW(Dyn) * dynamic;
    const char* strings;

    bool needs(const char* path, const char* name) const noexcept {
      const char* const slash = ::strrchr(path, '/');
      for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag != DT_NEEDED) continue;
        const char* const needed = strings + entry->d_un.d_val;
        if (::strcmp(needed, name) == 0 || ::strcmp(needed, path) == 0 ||
            (slash != nullptr && ::strcmp(needed, slash + 1) == 0))
          return true;
      }
      return false;
    }
  };
  bool is_needed(const char* path, const char* name) const noexcept {
    return std::any_of(found_, found_ + count_,
                       [&](const Found& one) { return one.needs(path, name); });
  }

  const Table& table_;
  const link_map* const library_;
  std::bitset<Table::kMost> are_next_;
  Found found_[kMost];
  std::size_t count_ = 0;
};

class Pass {
 public:
  // All modules; or those behind the first `skipped`, some of which are of that library.
  Pass(const Table& table, Direction direction, std::size_t skipped = 0,
       DeepBound* deep_bound = nullptr) noexcept
      : table_(table), direction_(direction), deep_bound_(deep_bound), left_to_skip_(skipped) {
    for (std::size_t i = 0; i < table.count; ++i)
      bounds_.add(direction == Direction::to_hooks ? table.rows[i].next : table.rows[i].hook);
  }

  static int visit(dl_phdr_info* info, std::size_t, void* self) noexcept {
    g_redirections.adds.store(info->dlpi_adds, std::memory_order_relaxed);
    Pass& pass = *static_cast<Pass*>(self);
    if (pass.left_to_skip_ == 0)
      pass.redirect(*info);
    else
      --pass.left_to_skip_;
    return 0;
  }

  const RedirectionCounts& counts() const noexcept { return counts_; }

 private:
  // The value that the word is to have; 0: the one that it has.
  std::uint64_t target_of(const Module& module, const ElfW(Rela) & entry,
                          std::uint64_t value) const noexcept {
    const auto type = ELF64_R_TYPE(entry.r_info);
    if (bounds_.contain(value)) {
      if (const std::uint64_t target = table_.target_of(value, direction_, module.start))
        return target;
    }
    if (type != machine::kCallSlot || direction_ == Direction::to_next || !binds_as_known_)
      return 0;
    // Not bound yet: the word leads back into the module, which has no such function.
    const ElfW(Sym)& symbol = module.symbols[ELF64_R_SYM(entry.r_info)];
    if (value < module.start || value >= module.end || symbol.st_shndx != SHN_UNDEF) return 0;
    const Redirection* const row = table_.by_name(module.strings + symbol.st_name);
    return row != nullptr && row->outside != module.start &&
                   (deep_bound_ == nullptr || deep_bound_->leads_to_next(*row))
               ? row->hook
               : 0;
  }

  static bool is_word(const ElfW(Rela) & entry) noexcept {
    const auto type = ELF64_R_TYPE(entry.r_info);
    return type == machine::kCallSlot || type == machine::kAddressSlot ||
           (type == machine::kDataWord && ELF64_R_SYM(entry.r_info) != 0 && entry.r_addend == 0);
  }

  void redirect(const dl_phdr_info& info) noexcept {
    const Module module{info};
    // Nor a copy of this library that was attached before.
    if (!module.valid() || module.start == own_start_ || module.start == loader_start_ ||
        info.dlpi_addr == vdso_ || ::strstr(info.dlpi_name, "/liboomrec") != nullptr)
      return;
    if (module.relro_start != module.relro_end && pages_.contain(module.relro_start)) {
      ++counts_.modules_being_loaded;
      return;
    }
    binds_as_known_ = deep_bound_ == nullptr || deep_bound_->contains(info, module);
    const std::uint32_t before = counts_.words;
    bool opened = false;
    for (int table = 0; table < 2; ++table)
      for (std::size_t i = 0; i < module.counts[table]; ++i)
        redirect_word(module, module.tables[table][i], opened);
    if (opened) protect(module, PROT_READ);
    counts_.modules += counts_.words != before ? 1 : 0;
  }

  void redirect_word(const Module& module, const ElfW(Rela) & entry, bool& opened) noexcept {
    if (!is_word(entry)) return;
    const std::uint64_t address = module.bias + entry.r_offset;
    const std::atomic_ref word{*reinterpret_cast<std::uint64_t*>(address)};
    const std::uint64_t target = target_of(module, entry, word.load(std::memory_order_relaxed));
    if (target == 0) return;
    if (!pages_.contain(address)) {
      if (!module.is_relro(address)) return;
      if (!opened && !protect(module, PROT_READ | PROT_WRITE)) return;
      opened = true;
    }
    word.store(target, std::memory_order_release);
    ++counts_.words;
  }

  static bool protect(const Module& module, int protection) noexcept {
    return system::call(SYS_mprotect, module.relro_start, module.relro_end - module.relro_start,
                        protection) == 0;
  }

  const Table& table_;
  const Direction direction_;
  DeepBound* const deep_bound_;
  std::size_t left_to_skip_;
  bool binds_as_known_ = true;  // the words of the present module that are not bound yet
  const std::uint64_t own_start_ = own_start();
  const std::uint64_t loader_start_ = ::getauxval(AT_BASE);
  const std::uint64_t vdso_ = ::getauxval(AT_SYSINFO_EHDR);
  WritablePages pages_;
  Bounds bounds_;
  RedirectionCounts counts_;
};

}  // namespace

void add_later_redirections(const LaterLibraries& libraries) noexcept {
  g_redirections.later = libraries;
}

void add_redirection(const char* name, const void* next, const void* hook) noexcept {
  add_redirection(name, next, hook, nullptr);
}

void add_redirection(const char* name, const void* next, const void* hook,
                     const void* outside) noexcept {
  if (g_redirections.filling != nullptr) g_redirections.filling->add(name, next, hook, outside);
}

void add_exported_redirection(const char* name, const void* next) noexcept {
  add_exported_redirection(name, next, name, nullptr);
}

void add_exported_redirection(const char* name, const void* next, const char* exported,
                              const void* outside) noexcept {
  if (g_redirections.filling != nullptr)
    add_exported(*g_redirections.filling, name, next, exported, outside);
}

void redirect_once(void (*add)() noexcept) noexcept {
  g_redirections.filling = new_table(nullptr);
  add();
  Table* const table = std::exchange(g_redirections.filling, nullptr);
  if (table == nullptr) return;
  table->sort();
  Pass pass{*table, Direction::to_hooks};
  for_each_module(Pass::visit, &pass);
  system::unmap(table, sizeof(Table));
}

void prepare_redirections() noexcept {
  g_redirections.later = {};
  g_redirections.later_loaded.store(0, std::memory_order_relaxed);
  free_tables();
  g_redirections.filling = new_table(nullptr);
  if (g_redirections.filling != nullptr) add_hooked_functions(*g_redirections.filling);
}

RedirectionCounts redirect_modules(Direction direction) noexcept {
  // Its hooks may run meanwhile, by function pointers that the program has looked up.
  const bool redirects = direction == Direction::to_hooks;
  if (redirects) {
    if (!g_redirections.in_force.load(std::memory_order_acquire)) publish_table();
    add_functions_loaded_later();
  }
  g_redirections.in_force.store(redirects, std::memory_order_release);
  const Table* const table = g_redirections.published.load(std::memory_order_acquire);
  if (table == nullptr) return {};
  Pass pass{*table, direction};
  for_each_module(Pass::visit, &pass);
  return pass.counts();
}

void redirect_words(std::span<const std::uint64_t> addresses, Direction direction) noexcept {
  const Table* const table = g_redirections.published.load(std::memory_order_acquire);
  if (table == nullptr || addresses.empty()) return;
  const WritablePages pages;
  for (const std::uint64_t address : addresses) {
    if (address % sizeof(std::uint64_t) != 0 || !pages.contain(address)) continue;
    const std::atomic_ref word{*reinterpret_cast<std::uint64_t*>(address)};
    std::uint64_t value = word.load(std::memory_order_relaxed);
    const std::uint64_t target = table->target_of(value, direction);
    if (target != 0) word.compare_exchange_strong(value, target, std::memory_order_acq_rel);
  }
}

bool is_redirecting() noexcept { return g_redirections.in_force.load(std::memory_order_acquire); }

unsigned long long loads_so_far() noexcept {
  unsigned long long adds = 0;
  for_each_module(
      [](dl_phdr_info* info, std::size_t, void* to) noexcept {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;
      },
      &adds);
  return adds;
}

void redirect_new_modules() noexcept {
  if (is_redirecting() && loads_so_far() != g_redirections.adds.load(std::memory_order_relaxed))
    redirect_modules(Direction::to_hooks);
}

void redirect_deep_bound(void* library, unsigned long long loads_before) noexcept {
  const unsigned long long fresh = loads_so_far() - loads_before;
  const Table* const table = fresh != 0 ? table_of_preloaded() : nullptr;
  if (table == nullptr) return;
  std::size_t loaded = 0;  // dlpi_adds - dlpi_subs would also count those of other namespaces
  for_each_module(
      [](dl_phdr_info*, std::size_t, void* count) noexcept {
        ++*static_cast<std::size_t*>(count);
        return 0;
      },
      &loaded);
  DeepBound deep_bound{*table, library};
  // The loader appends new modules to its list.
  const std::size_t older =
      loaded - static_cast<std::size_t>(std::min<std::uint64_t>(fresh, loaded));
  Pass pass{*table, Direction::to_hooks, older, &deep_bound};
  for_each_module(Pass::visit, &pass);
}

}  // namespace oomrec::shim
