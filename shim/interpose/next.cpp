#include "shim/interpose/next.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shim/interpose/loader.h"

namespace oomrec::shim {

constexpr std::size_t kBootstrapAlignment = 16;
alignas(kBootstrapAlignment) constinit std::byte g_bootstrap[kBootstrapBytes];

namespace {

// --- Blocks for the loader while it looks up our functions --------------------------------------

constinit std::atomic<std::size_t> g_bootstrap_used{0};

void* bootstrap_block(std::size_t alignment, std::size_t n) noexcept {
  const std::size_t spare = std::max(alignment, kBootstrapAlignment) - kBootstrapAlignment;
  if (n > kBootstrapBytes || spare > kBootstrapBytes) return nullptr;
  const std::size_t whole = (n + spare + kBootstrapAlignment - 1) & ~(kBootstrapAlignment - 1);
  const std::size_t from = g_bootstrap_used.fetch_add(whole, std::memory_order_relaxed);
  if (from + whole > kBootstrapBytes) return nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(g_bootstrap + from);
  return reinterpret_cast<void*>((at + spare) & ~(std::max(alignment, kBootstrapAlignment) - 1));
}

// --- Stand-ins while a function is looked up, and for missing ones ------------------------------

enum class Progress { none, resolving, done };
constinit std::atomic<Progress> g_progress{Progress::none};

// The result of a function that is missing, or called while it is being looked up.
template <class Result>
Result fail(int error) noexcept {
  errno = error;
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else if constexpr (!std::is_void_v<Result>) {
    return static_cast<Result>(-1);
  }
}

// Only the functions that the loader needs while it looks up others.
struct Bootstrap {
  static void* malloc(std::size_t n) noexcept { return bootstrap_block(kBootstrapAlignment, n); }
  static void* calloc(std::size_t k, std::size_t n) noexcept {
    std::size_t bytes;  // the arena is never reused, so it is still zero
    return __builtin_mul_overflow(k, n, &bytes) ? nullptr : malloc(bytes);
  }
  static void* realloc(void* block, std::size_t n) noexcept {
    void* const larger = malloc(n);
    if (block == nullptr || larger == nullptr) return larger;
    const std::size_t readable =
        static_cast<std::size_t>(g_bootstrap + kBootstrapBytes - static_cast<std::byte*>(block));
    return is_bootstrap_block(block) ? ::memmove(larger, block, std::min(n, readable)) : nullptr;
  }
  static void* memalign(std::size_t alignment, std::size_t n) noexcept {
    return bootstrap_block(alignment, n);
  }
  static void free(void*) noexcept {}
  // Looked up later than free.
  static void dallocx(void* block, int) noexcept { g_next.free(block); }
  static void sdallocx(void* block, std::size_t, int) noexcept { g_next.free(block); }
  static void free_sized(void* block, std::size_t) noexcept { g_next.free(block); }
  static void free_aligned_sized(void* block, std::size_t, std::size_t) noexcept {
    g_next.free(block);
  }
};

// Looks everything up and continues to the real function; meanwhile to the arena's.
#define X(result, name, parameters, arguments)                     \
  result first_##name parameters {                                 \
    resolve_next();                                                \
    if (g_next.name != first_##name) return g_next.name arguments; \
    return [&]<class Arena>(Arena*) -> result {                    \
      if constexpr (requires { Arena::name arguments; })           \
        return Arena::name arguments;                              \
      else                                                         \
        return fail<result>(EAGAIN);                               \
    }(static_cast<Bootstrap*>(nullptr));                           \
  }                                                                \
  result absent_##name parameters { return fail<result>(ENOSYS); }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
OOMREC_NEXT_FUNCTIONS(X)
#pragma GCC diagnostic pop
#undef X

// Before glibc 2.34 it is in libpthread, which a program without threads may load later, with a
// plugin, out of RTLD_NEXT's sight.
int later_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                         void* argument) {
  void* const library = g_next.dlopen("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = library != nullptr ? real_dlsym()(library, "pthread_create") : nullptr;
  if (found == nullptr) return absent_pthread_create(thread, attributes, start, argument);
  g_next.pthread_create = reinterpret_cast<decltype(g_next.pthread_create)>(found);
  return g_next.pthread_create(thread, attributes, start, argument);
}

// What the program's call does instead, because there is no such function.
void replace_absent(Next& next) noexcept {
  if (next.pthread_create == absent_pthread_create) next.pthread_create = later_pthread_create;
  if (next.dallocx == absent_dallocx) next.dallocx = [](void* block, int) { hook_free(block); };
  if (next.sdallocx == absent_sdallocx)
    next.sdallocx = [](void* block, std::size_t, int) { hook_free(block); };
  if (next.mallocx == absent_mallocx) next.mallocx = mallocx_by_memalign;
  if (next.rallocx == absent_rallocx) next.rallocx = rallocx_by_realloc;
  if (next.free_sized == absent_free_sized)
    next.free_sized = [](void* block, std::size_t) { hook_free(block); };
  if (next.free_aligned_sized == absent_free_aligned_sized)
    next.free_aligned_sized = [](void* block, std::size_t, std::size_t) { hook_free(block); };
}

// Before glibc 2.34, a lookup that fails ends the program while the loader still relocates it (a
// resolver of IFUNC may allocate then). So these wait for the constructor.
constexpr bool may_be_missing(std::string_view name) noexcept {
#define X(result, optional, parameters, arguments) \
  if (name == #optional) return true;
  OOMREC_OPTIONAL_FUNCTIONS(X)
#undef X
  return false;
}

// Of a library that came by dlopen: the memory of the program's own file, and of ours.
constinit bool g_in_program = false;
constinit ModuleRange g_program{}, g_own{};

int find_ranges(dl_phdr_info* info, std::size_t, void* is_first) noexcept {
  const ModuleRange range{*info};
  if (std::exchange(*static_cast<bool*>(is_first), false)) g_program = range;
  if (range.contains(&g_own)) g_own = range;
  return 0;
}

// Whether the program's calls lead to this definition: not to one of ours, nor to the stub of a
// program that takes the function's address (an undefined symbol with a value).
bool is_definition(const void* found) noexcept {
  if (found == nullptr || g_own.contains(found)) return false;
  if (!g_program.contains(found)) return true;
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  return ::dladdr1(found, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                   RTLD_DL_SYMENT) == 0 ||
         symbol == nullptr || symbol->st_shndx != SHN_UNDEF;
}

template <class Function>
void look_up(Function*& next, const char* name, Function* absent) noexcept {
  void* const found = next_definition(name);
  next = found != nullptr ? reinterpret_cast<Function*>(found) : absent;
}

}  // namespace

constinit Next g_next = {
#define X(result, name, parameters, arguments) first_##name,
    OOMREC_NEXT_FUNCTIONS(X)
#undef X
};

void resolve_next() noexcept {
  Progress none = Progress::none;
  if (!g_progress.compare_exchange_strong(none, Progress::resolving, std::memory_order_acq_rel))
    return;
  Next found = g_next;  // published all at once: until then the loader's blocks come from the arena
#define X(result, name, parameters, arguments) \
  if (!may_be_missing(#name)) look_up(found.name, #name, absent_##name);
  OOMREC_NEXT_FUNCTIONS(X)
#undef X
  g_next = found;
  oomrec_next_syscall = found.syscall;
  g_progress.store(Progress::done, std::memory_order_release);
}

void resolve_missing_next() noexcept {
#define X(result, name, parameters, arguments) look_up(g_next.name, #name, absent_##name);
  OOMREC_OPTIONAL_FUNCTIONS(X)
#undef X
  replace_absent(g_next);
  g_next.dlerror();  // an unknown name must not become the program's next message
}

void resolve_next_in_program() noexcept {
  g_in_program = true;
  bool is_first = true;
  for_each_module(find_ranges, &is_first);
  Next found = g_next;
#define X(result, name, parameters, arguments) look_up(found.name, #name, absent_##name);
  OOMREC_NEXT_FUNCTIONS(X)
#undef X
  replace_absent(found);
  g_next = found;
  oomrec_next_syscall = found.syscall;
  found.dlerror();
}

void* next_definition(const char* name) noexcept {
  if (g_in_program) {
    void* const found = real_dlsym()(RTLD_DEFAULT, name);
    if (is_definition(found)) return found;
  }
  return real_dlsym()(RTLD_NEXT, name);
}

bool is_absent(const void* function) noexcept {
#define X(result, name, parameters, arguments) \
  if (function == reinterpret_cast<const void*>(&absent_##name)) return true;
  OOMREC_NEXT_FUNCTIONS(X)
#undef X
  return false;
}

}  // namespace oomrec::shim

// Read by the assembly hook of syscall.
long (*oomrec_next_syscall)(long, long, long, long, long, long, long) = oomrec::shim::first_syscall;
