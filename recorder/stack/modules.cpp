#include "recorder/stack/modules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/machine/page.h"
#include "common/system/memory.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "recorder/python/attach.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/index.h"
#include "recorder/session/writer.h"
#include "recorder/stack/java.h"
#include "recorder/stack/memory_map.h"
#include "recorder/stack/module_entries.h"
#include "recorder/stack/walk_cache.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// struct dl_find_object of glibc ≥ 2.35; declared here, so that we build and start with an older
// one.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  const link_map* map;
  void* eh_frame_header;
  unsigned long long reserved[7];
};
// _dl_find_object; nullptr: not available, or not started yet. Looked up by name: linking it, even
// weakly, would make the whole library require GLIBC_2.35.
using FindObject = int(void* pc, FoundObject*) noexcept;
constinit FindObject* g_find_object = nullptr;

// The session's table is full, and has no id for this module: do not try again.
constexpr std::uint32_t kNoId = ~std::uint32_t{0};

constinit AddressRange g_program;  // of the program itself, less its load address

constinit system::Mutex g_lock;
// Mapped in blocks: few programs have hundreds of modules.
constexpr std::uint32_t kBlockSlots = 128;
constinit std::atomic<LoadedModule*> g_blocks[kModuleSlots / kBlockSlots] = {};
constinit std::atomic<std::uint32_t> g_count{1};

// A dead module may be dying: it was dead when the present round of forgetting began. Changed under
// g_lock, except from alive to dead.
enum class Life : std::uint8_t { free, dead, dying, alive };
constinit std::atomic<Life> g_lives[kModuleSlots] = {};
constinit session::FreeNumbers g_free_slots;         // under g_lock
constinit std::atomic<std::uint32_t> g_unloaded{0};  // since the last round for modules
constexpr std::uint32_t kManyUnloaded = kModuleSlots / 16;
// With fewer slots in use, a dead module keeps its own as long as a frame has its id: if it is
// loaded again, its frames are the same ones.
constexpr std::uint32_t kManySlots = kModuleSlots / 4;

constinit std::atomic<std::uint32_t> g_checks{0};  // which module to check next
constinit char g_path[4096] = {};                  // under g_lock

// The module in a slot of a block that is mapped.
LoadedModule& module_in(std::uint32_t slot) noexcept {
  LoadedModule* const block = g_blocks[slot / kBlockSlots].load(std::memory_order_relaxed);
  return block[slot % kBlockSlots];
}
bool is_alive(std::uint32_t slot) noexcept {
  return g_lives[slot].load(std::memory_order_acquire) == Life::alive;
}
std::uint32_t slots_in_use() noexcept {
  return g_count.load(std::memory_order_relaxed) - g_free_slots.count();
}

// False: no memory.
bool map_block_of(std::uint32_t slot) noexcept {
  std::atomic<LoadedModule*>& block = g_blocks[slot / kBlockSlots];
  if (block.load(std::memory_order_relaxed) != nullptr) return true;
  void* const mapped = system::map_private(kBlockSlots * sizeof(LoadedModule));
  block.store(static_cast<LoadedModule*>(mapped), std::memory_order_relaxed);
  return mapped != nullptr;
}

// A module before it has a slot.
struct FoundModule {
  AddressRange mapped;
  std::uint64_t base = 0;
  const char* path = nullptr;  // the loader's; nullptr: unknown
};

// From the first loaded byte to the last, as addresses in the program headers.
AddressRange loaded_range(const Elf64_Phdr* segments, std::uint64_t count) noexcept {
  AddressRange whole;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (segments[i].p_type != PT_LOAD) continue;
    if (whole.end == 0) whole.start = machine::page_down(segments[i].p_vaddr);
    whole.end = segments[i].p_vaddr + segments[i].p_memsz;
  }
  return whole;
}

// Reads the program headers of an ELF header in memory.
bool read_image(std::uint64_t header_address, std::uint64_t base, ModuleImage& module) noexcept {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(header_address);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  const std::uint64_t bytes = header->e_phnum * sizeof(Elf64_Phdr);
  const std::uint64_t at = header_address + header->e_phoff;
  if (!module.mapped.holds(at, bytes)) return false;
  module.base = base;
  module.segments = reinterpret_cast<const Elf64_Phdr*>(at);
  module.segment_count = header->e_phnum;
  return module.segment_at(at, PF_R).holds(at, bytes);
}

// Whether a range is inside a loaded segment: headers may lie.
bool is_loaded(const ModuleImage& module, std::uint64_t address, std::uint64_t bytes) noexcept {
  return bytes != 0 && module.segment_at(address, PF_R).holds(address, bytes);
}

void find_build_id(ModuleImage& module, const Elf64_Phdr& notes) noexcept {
  std::uint64_t at = module.base + notes.p_vaddr;
  std::uint64_t left = notes.p_memsz;
  if (!is_loaded(module, at, left)) return;
  const auto padded = [](std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; };
  while (left >= sizeof(Elf64_Nhdr)) {
    const auto* note = reinterpret_cast<const Elf64_Nhdr*>(at);
    const std::uint64_t name_bytes = padded(note->n_namesz);
    const std::uint64_t bytes = sizeof *note + name_bytes + padded(note->n_descsz);
    if (bytes > left) return;
    const auto* name = reinterpret_cast<const char*>(note + 1);
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0 && note->n_descsz <= sizeof module.build_id) {
      module.build_id_at = reinterpret_cast<const unsigned char*>(name + name_bytes);
      module.build_id_bytes = note->n_descsz;
      std::memcpy(module.build_id, module.build_id_at, note->n_descsz);
      return;
    }
    at += bytes;
    left -= bytes;
  }
}

// The outermost function of a greenlet. Greenlets take turns on one stack: a switch copies the part
// inside this function, and the memory further out is of the greenlet that runs at the time. Walked
// into, one line of a greenlet would have a stack for each place that the others have reached.
constexpr std::string_view kGreenletStart = "_ZN8greenlet12UserGreenlet13g_initialstubEPv";

void find_stack_switch(InHook hook, ModuleImage& module) noexcept {
  symbols::ElfSymbols exported(hook, module.mapped.start);
  if (!exported.valid()) return;
  std::uint64_t bytes = 0;
  const std::uint64_t start = exported.address_of(hook, kGreenletStart, &bytes);
  if (start != 0 && module.mapped.holds(start, bytes)) module.stack_switch = {start, start + bytes};
}

std::uint64_t hash_of(const char* path) noexcept {
  std::uint64_t hash = 0;
  for (; *path != '\0'; ++path) hash = session::mix(hash ^ static_cast<unsigned char>(*path));
  return hash;
}

// Completes `module` from the headers in memory. False: unreadable.
bool describe(InHook hook, const FoundModule& seen, ModuleImage& module) noexcept {
  module.mapped = seen.mapped;
  module.path_hash = seen.path == nullptr ? 0 : hash_of(seen.path);
  if (!read_image(seen.mapped.start, seen.base, module)) return false;
  for (std::uint32_t i = 0; i < module.segment_count; ++i) {
    const Elf64_Phdr& segment = module.segments[i];
    const std::uint64_t at = module.base + segment.p_vaddr;
    if (segment.p_type == PT_NOTE && module.build_id_bytes == 0) {
      find_build_id(module, segment);
    } else if (segment.p_type == PT_GNU_EH_FRAME && is_loaded(module, at, segment.p_memsz)) {
      module.eh_frame_header = {at, at + segment.p_memsz};
    }
  }
  find_stack_switch(hook, module);
  return true;
}

// Without the loader's help: the file mapping that contains `pc`, from the mapping of its ELF
// header on.
bool find_module_in_maps(InHook hook, std::uint64_t pc, FoundModule& seen) noexcept {
  MemoryMap map(hook, g_path, sizeof g_path);
  MappedRange range;
  std::uint64_t header = 0;
  while (map.next(range)) {
    if (g_path[0] == '\0' || (g_path[0] == '[' && std::string_view{g_path} != "[vdso]")) {
      if (range.end <= pc) continue;  // a hole of one module, or between two
      return false;
    }
    if (range.file_offset == 0 && range.readable) header = range.start;
    if (pc < range.start) return false;
    if (pc >= range.end) continue;
    const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(header);
    if (header == 0 || std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return false;
    const auto* segments = reinterpret_cast<const Elf64_Phdr*>(header + elf->e_phoff);
    const AddressRange whole = loaded_range(segments, elf->e_phnum);
    seen.base = header - whole.start;
    seen.mapped = {header, seen.base + whole.end};
    seen.path = g_path;
    return seen.mapped.holds(pc);
  }
  return false;
}

// The kernel may load the program with holes between its segments (node's). Then the loader returns
// one segment only; this returns all.
AddressRange mapped_range(const FoundObject& found) noexcept {
  if (found.map->l_name[0] == '\0' && g_program.end != 0) {
    return {found.map->l_addr + g_program.start, found.map->l_addr + g_program.end};
  }
  return {reinterpret_cast<std::uint64_t>(found.map_start),
          reinterpret_cast<std::uint64_t>(found.map_end)};
}

bool find_module(InHook hook, std::uint64_t pc, FoundModule& seen) noexcept {
  if (g_find_object == nullptr) return find_module_in_maps(hook, pc, seen);
  FoundObject found;
  if (g_find_object(reinterpret_cast<void*>(pc), &found) != 0) return false;
  seen.mapped = mapped_range(found);
  seen.base = found.map->l_addr;
  seen.path = found.map->l_name;
  return true;
}

// The absolute path of a module, in g_path unless the loader's own will do.
std::string_view path_of(InHook hook, const FoundModule& seen) noexcept {
  const std::string_view name = seen.path == nullptr ? "" : seen.path;
  if (name.starts_with('/') || name == "[vdso]") return name;
  if (name.starts_with("linux-vdso")) return "[vdso]";
  if (name.empty()) {
    // The first is empty once the main thread has ended.
    for (const char* const link : {"/proc/self/exe", "/proc/thread-self/exe"}) {
      const long bytes = system::call(SYS_readlinkat, AT_FDCWD, link, g_path, sizeof g_path);
      if (bytes > 0) return {g_path, static_cast<std::size_t>(bytes)};
    }
  }
  MemoryMap map(hook, g_path, sizeof g_path);  // a relative name: the kernel knows the full path
  MappedRange range;
  while (map.next(range)) {
    if (range.start == seen.mapped.start && g_path[0] == '/') return g_path;
  }
  return name;
}

// Records `module` in the session, under g_lock.
void enter(InHook hook, LoadedModule& module, std::uint64_t pc) noexcept {
  auto& session = session::g_session;
  FoundModule seen;
  if (!find_module(hook, pc, seen)) return;
  session::Module entry{};
  entry.base = module.base;
  entry.start = module.mapped.start;
  entry.end = module.mapped.end;
  entry.generation = static_cast<std::uint32_t>(
      session.header().module_generation.load(std::memory_order_relaxed));
  std::memcpy(entry.build_id, module.build_id, sizeof entry.build_id);
  entry.build_id_bytes = module.build_id_bytes;
  const std::uint32_t id = add_module_entry(hook, entry, path_of(hook, seen));
  module.id.store(id != 0 ? id : kNoId, std::memory_order_release);
}

bool is_same(const ModuleImage& a, const ModuleImage& b) noexcept {
  return a.mapped.start == b.mapped.start && a.mapped.end == b.mapped.end && a.base == b.base &&
         a.path_hash == b.path_hash && a.build_id_bytes != 0 &&
         a.build_id_bytes == b.build_id_bytes &&
         std::memcmp(a.build_id, b.build_id, a.build_id_bytes) == 0;
}

std::uint32_t find_slot(std::uint64_t pc) noexcept {
  const std::uint32_t count = module_slots();
  for (std::uint32_t slot = 1; slot < count; ++slot)
    if (is_alive(slot) && module_in(slot).mapped.holds(pc)) return slot;
  return 0;
}

// The slot of the same module, which was loaded before; 0: none. Under g_lock.
std::uint32_t dead_slot_of(const ModuleImage& image) noexcept {
  const std::uint32_t count = module_slots();
  for (std::uint32_t slot = 1; slot < count; ++slot)
    if (g_lives[slot].load(std::memory_order_relaxed) != Life::free &&
        is_same(module_in(slot), image))
      return slot;
  return 0;
}

// A free slot, with its memory; 0: none. Under g_lock.
std::uint32_t take_slot() noexcept {
  if (const std::uint32_t slot = g_free_slots.take(1)) return slot;
  const std::uint32_t count = g_count.load(std::memory_order_relaxed);
  if (count == kModuleSlots || !map_block_of(count)) return 0;
  g_count.store(count + 1, std::memory_order_release);
  return count;
}

// A slot for the module at `pc`, seen for the first time or loaded again.
std::uint32_t add_slot(InHook hook, std::uint64_t pc) noexcept {
  const system::MutexGuard guard(g_lock);
  if (!guard || g_blocks[0].load(std::memory_order_relaxed) == nullptr) return 0;
  if (const std::uint32_t slot = find_slot(pc); slot != 0) return slot;
  FoundModule seen;
  ModuleImage image{};
  if (!find_module(hook, pc, seen) || !describe(hook, seen, image)) return 0;
  std::uint32_t slot = dead_slot_of(image);
  if (slot == 0) {
    slot = take_slot();
    if (slot == 0) return 0;
    static_cast<ModuleImage&>(module_in(slot)) = image;  // others see it when it is alive
    module_in(slot).id.store(0, std::memory_order_relaxed);
  }
  g_lives[slot].store(Life::alive, std::memory_order_release);
  return slot;
}

// Whether the bytes at `at` still are `expected`; reads through the kernel, because the module may
// be unmapped at any moment.
bool memory_equals(const unsigned char* at, const unsigned char* expected,
                   std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  unsigned char now[32];
  const iovec local{now, bytes};
  const iovec remote{const_cast<unsigned char*>(at), bytes};
  const long got =
      system::call(SYS_process_vm_readv, system::call(SYS_getpid), &local, 1, &remote, 1);
  if (got < 0) return got != -EFAULT;  // not permitted: assume that the module is unchanged
  return static_cast<std::size_t>(got) == bytes && std::memcmp(now, expected, bytes) == 0;
}

bool still_loaded(const ModuleImage& module) noexcept {
  if (g_find_object != nullptr) {
    FoundObject found;
    if (g_find_object(reinterpret_cast<void*>(module.mapped.start), &found) != 0) return false;
    const AddressRange now = mapped_range(found);
    if (now.start != module.mapped.start || now.end != module.mapped.end ||
        found.map->l_addr != module.base) {
      return false;
    }
  }
  return memory_equals(module.build_id_at, module.build_id, module.build_id_bytes);
}

// False: it was unloaded; marks it as dead.
bool check(std::uint32_t slot) noexcept {
  if (!is_alive(slot) || still_loaded(module_in(slot))) return true;
  Life life = Life::alive;
  if (g_lives[slot].compare_exchange_strong(life, Life::dead))
    g_unloaded.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

AddressRange ModuleImage::segment_at(std::uint64_t address, std::uint32_t flags) const noexcept {
  for (std::uint32_t i = 0; i < segment_count; ++i) {
    const Elf64_Phdr& segment = segments[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & flags) != flags) continue;
    const AddressRange range{base + segment.p_vaddr, base + segment.p_vaddr + segment.p_memsz};
    if (range.holds(address) && mapped.holds(range.start, segment.p_memsz)) return range;
  }
  return {};
}

void start_modules(InHook) noexcept {
  g_find_object = reinterpret_cast<FindObject*>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  g_program =
      loaded_range(reinterpret_cast<const Elf64_Phdr*>(getauxval(AT_PHDR)), getauxval(AT_PHNUM));
  map_block_of(0);
}

std::uint32_t module_slot_at(InHook hook, std::uint64_t pc) noexcept {
  const std::uint32_t slot = find_slot(pc);
  return slot != 0 ? slot : add_slot(hook, pc);
}

std::uint32_t known_module_slot_at(std::uint64_t pc) noexcept { return find_slot(pc); }

std::uint32_t module_slots() noexcept { return g_count.load(std::memory_order_acquire); }

const LoadedModule& loaded_module(std::uint32_t slot) noexcept { return module_in(slot); }
bool is_module_loaded(std::uint32_t slot) noexcept { return is_alive(slot); }

bool module_search_is_slow() noexcept { return g_find_object == nullptr; }

bool modules_still_loaded(InHook) noexcept {
  bool all = true;
  const std::uint32_t count = module_slots();
  for (std::uint32_t slot = 1; slot < count; ++slot) all &= check(slot);
  return all;
}

bool next_module_still_loaded(InHook) noexcept {
  const std::uint32_t count = module_slots();
  if (count == 1) return true;
  return check(1 + g_checks.fetch_add(1, std::memory_order_relaxed) % (count - 1));
}

void reset_module_ids(InHook hook) noexcept {
  g_lock.unlock();  // its owner does not exist in the child
  const std::uint32_t count = g_count.load(std::memory_order_relaxed);
  for (std::uint32_t slot = 1; slot < count; ++slot) {
    module_in(slot).id.store(0, std::memory_order_relaxed);
  }
  reset_module_entries(hook);
}

bool has_many_dead_modules() noexcept {
  const std::uint32_t unloaded = g_unloaded.load(std::memory_order_relaxed);
  return unloaded >= kManyUnloaded || (unloaded != 0 && slots_in_use() == kModuleSlots);
}

bool begin_forgetting_modules(InHook, bool is_short) noexcept {
  const bool has_any = g_unloaded.load(std::memory_order_relaxed) != 0;
  if (!has_many_dead_modules() && !(is_short && has_any)) return false;
  const system::TryGuard guard(g_lock);
  if (!guard) return false;
  g_unloaded.store(0, std::memory_order_relaxed);
  const std::uint32_t count = module_slots();
  for (std::uint32_t slot = 1; slot < count; ++slot)
    if (g_lives[slot].load(std::memory_order_acquire) == Life::dead)
      g_lives[slot].store(Life::dying, std::memory_order_relaxed);
  invalidate_caches();  // who begins an event in the new era has no id of these
  return true;
}

bool forget_module_slots(InHook hook, std::uint32_t& at, std::uint32_t most,
                         std::uint32_t round) noexcept {
  const system::TryGuard guard(g_lock);
  if (!guard) return false;
  const std::uint32_t count = module_slots();
  for (const std::uint32_t end = std::min(at + most, count); at < end; ++at) {
    const Life life = g_lives[at].load(std::memory_order_relaxed);
    std::atomic<std::uint32_t>& id = module_in(at).id;
    std::uint32_t now = id.load(std::memory_order_relaxed);
    if (now == kNoId) id.store(now = 0, std::memory_order_relaxed);  // there may be memory now
    if (life != Life::dying) continue;
    if (now != 0 && is_module_claimed(now, round) && slots_in_use() < kManySlots) continue;
    disown_module_entry(now);
    id.store(0, std::memory_order_relaxed);
    g_lives[at].store(Life::free, std::memory_order_relaxed);
    g_free_slots.give_back(hook, at);
  }
  return at >= count;
}

bool forget_module_entries(InHook hook, std::uint32_t& at, std::uint32_t most,
                           std::uint32_t round) noexcept {
  const system::TryGuard guard(g_lock);
  return guard && free_module_entries(hook, at, most, round);
}

namespace {

CodeRange code_range_of(InHook hook, LoadedModule& module, std::uint64_t pc) noexcept {
  std::uint32_t id = module.id.load(std::memory_order_acquire);
  if (id == 0 && session::g_session.active()) {
    {
      const system::MutexGuard guard(g_lock);
      if (guard && module.id.load(std::memory_order_relaxed) == 0) enter(hook, module, pc);
    }
    id = module.id.load(std::memory_order_acquire);
    python_module_loaded(hook, module.mapped.start);
    java_module_loaded(hook, module.mapped.start);
    // What was captured before has no functions of Lua.
    if (lua_module_loaded(hook, module.mapped.start, module.mapped.end)) invalidate_caches();
  }
  if (id == kNoId) return {};
  const AddressRange& all = module.mapped;
  return {all.start, id == 0 ? 0 : all.end - all.start, module.base, id};
}

}  // namespace

CodeRange code_range_at(InHook hook, std::uint64_t pc) noexcept {
  const std::uint32_t slot = module_slot_at(hook, pc);
  return slot == 0 ? CodeRange{} : code_range_of(hook, module_in(slot), pc);
}

std::uint32_t module_slot_of(std::uint32_t id) noexcept {
  const std::uint32_t count = module_slots();
  std::uint32_t slot = id == 0 ? 0 : count - 1;
  while (slot != 0 && module_in(slot).id.load(std::memory_order_relaxed) != id) --slot;
  return slot;
}

std::uint64_t native_frame_in(InHook hook, std::uint32_t slot, std::uint64_t offset,
                              session::NativeFlags flags) noexcept {
  LoadedModule& module = module_in(slot);
  const bool is_loaded = slot != 0 && is_alive(slot);
  const std::uint64_t pc = slot == 0 ? offset : module.base + offset;
  const CodeRange code = is_loaded ? code_range_of(hook, module, pc) : CodeRange{};
  return session::native_frame(code.module, code.module == 0 ? pc : offset, flags);
}

ModuleRef module_at(InHook hook, std::uint64_t pc) noexcept {
  const CodeRange code = code_range_at(hook, pc);
  return {code.module, code.base};
}

}  // namespace oomrec::stack
