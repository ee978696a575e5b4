#include "shim/heap.h"

#include <dlfcn.h>
#include <string.h>

#include <algorithm>
#include <cstddef>

#include "common/text/text.h"
#include "recorder/events/heap.h"
#include "recorder/recorder.h"
#include "recorder/state/request.h"
#include "shim/heap_functions.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"

namespace oomrec::shim {

constinit Watch g_watched[kHostApiCount] = {};
constinit bool g_entered_unwatched = false;
constinit bool g_glibc_chunks = false;
constinit std::uint64_t g_long_header_flag = kMappedFlag;

// Its size is unknown, but the arena behind it is readable.
void* copy_out(const void* block, std::uint64_t bytes) noexcept {
  void* const copy = g_next.malloc(bytes);
  if (copy != nullptr) {
    for (std::uint64_t i = 0; i < bytes && is_bootstrap_block(static_cast<const char*>(block) + i);
         ++i)
      static_cast<char*>(copy)[i] = static_cast<const char*>(block)[i];
  }
  return copy;
}

#define X(name, parameters, arguments, bytes, alignment, may_be_invalid)                    \
  OOMREC_DIRECT_HOOK(void*, name, parameters) {                                             \
    return observe_allocation(                                                              \
        Api::name, bytes, [=] { return g_next.name arguments; },                            \
        [] { return !(may_be_invalid) || errno != EINVAL; }, gap_behind(bytes, alignment)); \
  }
OOMREC_HEAP_ALLOCATORS(X)
#undef X

#define X(name, parameters, arguments, bytes)                                                    \
  OOMREC_DIRECT_HOOK(void*, name, parameters) {                                                  \
    return observe_reallocation(Api::name, block, bytes, [&] { return g_next.name arguments; }); \
  }
OOMREC_HEAP_REALLOCATORS(X)
#undef X

OOMREC_DIRECT_HOOK(void, free, (void* block)) {
  if (is_bootstrap_block(block)) return;
  observe_release(Api::free, block, [=] { g_next.free(block); });
}

namespace {
constinit bool g_watches_libc_names = false;
}

// An allocator that comes before the C library may call these for blocks of its own, and is
// observed itself. Where they belong to the program's allocator, they are its functions by another
// name.
#define X(name, parameters, arguments, bytes, alignment, may_be_invalid)                    \
  OOMREC_HOOK(void*, __libc_##name, parameters) {                                           \
    if (!g_watches_libc_names) return g_next.__libc_##name arguments;                       \
    return observe_allocation(                                                              \
        Api::name, bytes, [=] { return g_next.__libc_##name arguments; },                   \
        [] { return !(may_be_invalid) || errno != EINVAL; }, gap_behind(bytes, alignment)); \
  }
OOMREC_LIBC_ALLOCATORS(X)
#undef X

OOMREC_HOOK(void*, __libc_realloc, (void* block, size_t n)) {
  if (!g_watches_libc_names) return g_next.__libc_realloc(block, n);
  return observe_reallocation(Api::realloc, block, n,
                              [=] { return g_next.__libc_realloc(block, n); });
}

OOMREC_HOOK(void, __libc_free, (void* block)) {
  if (is_bootstrap_block(block)) return;
  if (!g_watches_libc_names) return g_next.__libc_free(block);
  observe_release(Api::free, block, [=] { g_next.__libc_free(block); });
}

OOMREC_DIRECT_HOOK(int, posix_memalign, (void** block, size_t alignment, size_t n)) {
  int error = ENOMEM;  // the result at the soft limit, when the lambda is not called
  bool asked = false;
  const int errno_before = errno;
  observe_allocation(
      Api::posix_memalign, n,
      [&]() -> void* {
        asked = true;
        error = g_next.posix_memalign(block, alignment, n);
        return error == 0 ? *block : nullptr;
      },
      [&] { return error == ENOMEM; }, gap_behind(n, alignment));
  if (!asked) errno = errno_before;
  return error;
}

#define X(result, name, parameters, arguments)                         \
  OOMREC_HOOK(result, name, parameters) {                              \
    if (is_bootstrap_block(block)) return;                             \
    observe_release(Api::name, block, [=] { g_next.name arguments; }); \
  }
OOMREC_SIZED_FREES(X)
#undef X

namespace {

// Of jemalloc's flags: the alignment's logarithm.
std::size_t alignment_in(int flags) noexcept {
  constexpr int kLogAlignment = 63;
  return std::size_t{1} << (flags & kLogAlignment);
}

}  // namespace

// Where there is no jemalloc, the program's allocator serves them by memalign and realloc. One that
// is there, but is not the program's allocator, has blocks of its own.
OOMREC_HOOK(void*, mallocx, (size_t n, int flags)) {
  const bool is_absent = g_next.mallocx == mallocx_by_memalign;
  if (!is_absent && watched(Api::mallocx) == Watch::off) return g_next.mallocx(n, flags);
  return observe_allocation(
      is_absent ? Api::memalign : Api::mallocx, n, [=] { return g_next.mallocx(n, flags); },
      [] { return true; }, gap_behind(n, alignment_in(flags)));
}

OOMREC_HOOK(void*, rallocx, (void* block, size_t n, int flags)) {
  const bool is_absent = g_next.rallocx == rallocx_by_realloc;
  if (!is_absent && watched(Api::mallocx) == Watch::off) return g_next.rallocx(block, n, flags);
  return observe_reallocation(Api::realloc, block, n,
                              [=] { return g_next.rallocx(block, n, flags); });
}

void* mallocx_by_memalign(std::size_t n, int flags) {
  constexpr int kZero = 64;
  void* const block = g_next.memalign(std::max(alignment_in(flags), alignof(std::max_align_t)), n);
  return block != nullptr && (flags & kZero) != 0 ? ::memset(block, 0, n) : block;
}

void* rallocx_by_realloc(void* block, std::size_t n, int) { return g_next.realloc(block, n); }

OOMREC_HOOK(void, cfree, (void* block)) { hook_free(block); }  // of programs before glibc 2.26

namespace {

// A copy of a text of `length` bytes, by an allocator's own function.
template <class Real>
char* observe_copy(Api api, std::size_t length, Real real) noexcept {
  return static_cast<char*>(observe_allocation(
      api, length + 1, [=]() -> void* { return real(); }, [] { return true; }));
}

}  // namespace

OOMREC_HOOK(char*, strdup, (const char* text)) {
  if (watched(Api::strdup) == Watch::off) return g_next.strdup(text);
  return observe_copy(Api::strdup, ::strlen(text), [=] { return g_next.strdup(text); });
}

OOMREC_HOOK(char*, strndup, (const char* text, size_t n)) {
  if (watched(Api::strndup) == Watch::off) return g_next.strndup(text, n);
  return observe_copy(Api::strndup, ::strnlen(text, n), [=] { return g_next.strndup(text, n); });
}

// Its length is known only afterwards. NULL mostly means that there is no such file.
OOMREC_HOOK(char*, realpath, (const char* path, char* resolved)) {
  if (watched(Api::realpath) == Watch::off || resolved != nullptr)
    return g_next.realpath(path, resolved);
  const HookScope scope;
  if (!scope.outermost()) return g_next.realpath(path, nullptr);
  scope.leave_recorder();
  char* const found = g_next.realpath(path, nullptr);
  if (found == nullptr) return nullptr;
  const KeepErrno keep;
  recorder::on_allocate(scope.in_hook(),
                        {Space::heap, Api::realpath, reinterpret_cast<std::uint64_t>(found),
                         ::strlen(found) + 1, usable_bytes(found)});
  return found;
}

namespace {

// Whether usable_bytes() reads this block's size correctly.
bool reads_size_of(void* block) noexcept {
  g_glibc_chunks = true;
  const bool equal = usable_bytes(block) == g_next.malloc_usable_size(block);
  g_glibc_chunks = false;
  return equal;
}

// Whether malloc_usable_size cannot be the allocator's: a preload that puts a header before each
// block (glibc's libmemusage) does not replace it, and it takes the header for a chunk's size.
constinit bool g_sizes_are_absurd = false;
bool has_absurd_sizes() noexcept {
  constexpr std::size_t kSizes[] = {24, 1000, 40000};
  constexpr std::size_t kMostSlack = 64 * 1024;
  bool absurd = false;
  for (const std::size_t bytes : kSizes) {
    void* const block = g_next.malloc(bytes);
    if (block == nullptr) continue;
    const std::size_t usable = g_next.malloc_usable_size(block);
    const bool is_known = usable != 0;  // to tcmalloc it is not before its constructor has run
    absurd = absurd || (is_known && (usable < bytes || usable > 2 * bytes + kMostSlack));
    g_next.free(block);
  }
  return absurd;
}

// Whether a block's size can be read from the word before it, as in glibc's heap.
bool has_glibc_chunks() noexcept {
  if (allocator_name() != "libc.so.6") return false;
  // The last block is mapped, and larger than 32 MiB, because releasing a smaller one would raise
  // the program's mapping threshold (mallopt(3), M_MMAP_THRESHOLD).
  constexpr std::size_t kSizes[] = {0, 1, 24, 25, 1000, 40000, 40 << 20};
  for (const std::size_t bytes : kSizes) {
    void* const block = g_next.malloc(bytes);
    if (block == nullptr) continue;
    bool equal = reads_size_of(block);
    if (!equal) {
      g_long_header_flag = 0;
      equal = reads_size_of(block);
    }
    g_next.free(block);
    if (!equal) return false;
  }
  return true;
}

}  // namespace

std::string_view allocator_name() noexcept {
  Dl_info allocator;
  if (::dladdr(reinterpret_cast<const void*>(g_next.malloc), &allocator) == 0 ||
      allocator.dli_fname == nullptr)
    return {};
  return text::base_name(allocator.dli_fname);
}

std::uint64_t ask_usable_bytes(void* block) noexcept {
  return g_sizes_are_absurd ? 0 : g_next.malloc_usable_size(block);
}

const void* library_of(const void* function) noexcept {
  struct Search {
    const void* function;
    std::uint64_t start;
  } search{function, 0};
  const auto visit = [](dl_phdr_info* info, std::size_t, void* data) noexcept {
    Search& searched = *static_cast<Search*>(data);
    const ModuleRange range{*info};
    if (!range.contains(searched.function)) return 0;
    searched.start = range.start;
    return 1;
  };
  for_each_module(visit, &search);
  return reinterpret_cast<const void*>(search.start);
}

void stop_heap() noexcept {
  for (Watch& watch : g_watched)
    std::atomic_ref{watch}.store(Watch::off, std::memory_order_relaxed);
}

void find_chunks() noexcept {
  g_glibc_chunks = has_glibc_chunks();
  g_sizes_are_absurd = !g_glibc_chunks && has_absurd_sizes();
}

bool are_sizes_unknown() noexcept { return g_sizes_are_absurd; }

void start_heap() noexcept {
  // glibc's chunks have at least 32 bytes; no malloc aligns to less than 8 bytes.
  recorder::set_block_distance(g_glibc_chunks ? 5 : 4);
  recorder::record_allocator(OutsideHooks::in_hook(), allocator_name());
  const void* const allocator = library_of(reinterpret_cast<const void*>(g_next.malloc));
  const bool has_own_new = start_operator_new(allocator);
  g_watches_libc_names =
      library_of(reinterpret_cast<const void*>(g_next.__libc_malloc)) == allocator;
  const auto watch = [&](Api api, const void* function) {
    if (library_of(function) == allocator)
      g_watched[static_cast<std::size_t>(api)] =
          has_own_new ? Watch::on_with_pending_new : Watch::on;
  };
#define X(result, name, parameters, arguments) \
  watch(Api::name, reinterpret_cast<const void*>(g_next.name));
  OOMREC_HEAP_FUNCTIONS(X)
  OOMREC_SIZED_FREES(X)
  X(void*, mallocx, (), ())
  if (library_of(reinterpret_cast<const void*>(g_next.munmap)) != allocator) {
    OOMREC_COPYING_FUNCTIONS(X)
  }
#undef X
}

}  // namespace oomrec::shim
