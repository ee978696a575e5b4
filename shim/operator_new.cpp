// operator new and delete: calls the next ones so that their exceptions pass through.
//
// Three cases, decided once at start:
//   on malloc   libstdc++'s: it calls our malloc, which records. The hook is a jump.
//               If a rule of --fail names operator_new, the hook announces the call to malloc's.
//   own         jemalloc, tcmalloc and mimalloc have their own, which never calls malloc:
//               recorded here. Those of jemalloc that align call aligned_alloc: they are on malloc.
//   missing     a C program that loads C++ libraries privately (python): ours calls malloc. Only
//               after a failure it looks up the calling library's operator new, to get its
//               exception.
//
// The next operator new may throw. It is called once, and no object of ours with a destructor is
// alive during the call: the library is compiled without exceptions, so nothing of ours would be
// unwound. report_pending_new() explains how its failure is detected.
#include <dlfcn.h>
#include <stddef.h>

#include "recorder/events/heap.h"
#include "recorder/failures/failures.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/state/request.h"
#include "shim/heap.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"

namespace oomrec::shim {
namespace {

// clang-format off
//  symbol                                  parameters                                         arguments              alignment
#define OOMREC_NEW_OPERATORS(X) \
  X(_Znwm,                               (size_t n),                                        (n),                   0) \
  X(_Znam,                               (size_t n),                                        (n),                   0) \
  X(_ZnwmRKSt9nothrow_t,                 (size_t n, const void* nothrow),                   (n, nothrow),          0) \
  X(_ZnamRKSt9nothrow_t,                 (size_t n, const void* nothrow),                   (n, nothrow),          0) \
  X(_ZnwmSt11align_val_t,                (size_t n, size_t aligned),                        (n, aligned),          aligned) \
  X(_ZnamSt11align_val_t,                (size_t n, size_t aligned),                        (n, aligned),          aligned) \
  X(_ZnwmSt11align_val_tRKSt9nothrow_t,  (size_t n, size_t aligned, const void* nothrow),   (n, aligned, nothrow), aligned) \
  X(_ZnamSt11align_val_tRKSt9nothrow_t,  (size_t n, size_t aligned, const void* nothrow),   (n, aligned, nothrow), aligned)

#define OOMREC_DELETE_OPERATORS(X) \
  X(_ZdlPv,                              (void* block),                                     (block)) \
  X(_ZdaPv,                              (void* block),                                     (block)) \
  X(_ZdlPvm,                             (void* block, size_t n),                           (block, n)) \
  X(_ZdaPvm,                             (void* block, size_t n),                           (block, n)) \
  X(_ZdlPvRKSt9nothrow_t,                (void* block, const void* nothrow),                (block, nothrow)) \
  X(_ZdaPvRKSt9nothrow_t,                (void* block, const void* nothrow),                (block, nothrow)) \
  X(_ZdlPvSt11align_val_t,               (void* block, size_t aligned),                     (block, aligned)) \
  X(_ZdaPvSt11align_val_t,               (void* block, size_t aligned),                     (block, aligned)) \
  X(_ZdlPvmSt11align_val_t,              (void* block, size_t n, size_t aligned),           (block, n, aligned)) \
  X(_ZdaPvmSt11align_val_t,              (void* block, size_t n, size_t aligned),           (block, n, aligned)) \
  X(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void* block, size_t aligned, const void* nothrow), (block, aligned, nothrow)) \
  X(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void* block, size_t aligned, const void* nothrow), (block, aligned, nothrow))
// clang-format on

enum class Kind : std::uint8_t { unknown, missing, on_malloc, announced, own };

template <class Function>
struct Operator {
  Function* next = nullptr;
  Kind kind = Kind::unknown;
};

struct Operators {
#define X(symbol, parameters, ...) Operator<void * parameters> symbol;
  OOMREC_NEW_OPERATORS(X)
#undef X
#define X(symbol, parameters, arguments) Operator<void parameters> symbol;
  OOMREC_DELETE_OPERATORS(X)
#undef X
};
constinit Operators g_operators;

// A call of an allocator's own operator new that has not returned, and may never return.
struct PendingNew {
  std::uint64_t bytes;
  bool under_way;
  bool made_impossible;  // already reported: it requests kImpossible bytes at each attempt
};
constexpr std::uint64_t kImpossible = PTRDIFF_MAX;
[[gnu::tls_model("initial-exec")]] constinit thread_local PendingNew t_pending{};

// The request that operator new has reported, while the library's own requests it from malloc
// again, perhaps rounded up to the alignment.
struct ReportedNew {
  std::uint64_t bytes;
  std::uint64_t alignment;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local ReportedNew t_reported{};

template <class Function>
void look_up(Operator<Function>& entry, const char* symbol, const void* allocator) noexcept {
  void* const found = next_definition(symbol);
  entry.next = reinterpret_cast<Function*>(found);
  if (found == nullptr)
    entry.kind = Kind::missing;
  else
    entry.kind = library_of(found) == allocator ? Kind::own : Kind::on_malloc;
}

// Tested by calling it.
template <class Function, class... Nothrow>
void find_whether_on_malloc(Operator<Function>& aligned, Nothrow... nothrow) noexcept {
  constexpr std::size_t kAlignment = 64;
  if (aligned.kind != Kind::own) return;
  g_entered_unwatched = false;
  void* const block = aligned.next(1, kAlignment, nothrow...);
  if (g_entered_unwatched) aligned.kind = Kind::on_malloc;
  g_next.free(block);
}

void announce_all_new() noexcept {
#define X(symbol, ...) g_operators.symbol.kind = Kind::announced;
  OOMREC_NEW_OPERATORS(X)
#undef X
}

// For calls before the constructor has run: nothing is watched yet, so the kinds do not matter.
template <class Function>
void look_up_early(Operator<Function>& entry, const char* symbol) noexcept {
  resolve_next();
  look_up(entry, symbol, nullptr);
  g_next.dlerror();
}

// Before the call of an allocator's own operator new. Returns the bytes to request from it.
std::uint64_t enter_own_new(std::uint64_t bytes) noexcept {
  if (watched(Api::operator_new) == Watch::off) return bytes;
  report_pending_new();
  const HookScope scope;
  if (!scope.outermost()) return bytes;
  recorder::Request request{Space::heap, Api::operator_new, bytes};
  if (recorder::admits(scope.in_hook(), request, bytes)) {
    t_pending = {bytes, true, false};
    return bytes;
  }
  recorder::on_failure(scope.in_hook(), request, ENOMEM, recorder::FailedBy::recorder);
  t_pending.made_impossible = true;
  return kImpossible;  // which fails in its own way: new-handler, exception
}

void leave_own_new(void* block, std::uint64_t bytes) noexcept {
  if (watched(Api::operator_new) == Watch::off) return;
  if (block == nullptr) return report_pending_new();  // a nothrow form
  t_pending.under_way = false;
  const HookScope scope;
  if (scope.outermost()) {
    recorder::on_allocate(scope.in_hook(),
                          {Space::heap, Api::operator_new, reinterpret_cast<std::uint64_t>(block),
                           bytes, usable_bytes(block)});
  } else if (scope.interrupted_recorder()) {
    recorder::count_allocate(Space::heap, bytes, usable_bytes(block));
  }
}

// operator new without a next one: calls malloc.
void* new_by_malloc(std::uint64_t bytes, std::uint64_t alignment) noexcept {
  return observe_allocation(
      Api::operator_new, bytes,
      [&] {
        const std::uint64_t some = bytes != 0 ? bytes : 1;
        return alignment != 0 ? g_next.memalign(alignment, some) : g_next.malloc(some);
      },
      [] { return true; }, gap_behind(bytes, alignment));
}

// The operator new that the calling library would have used: its own or its C++ library's. Called
// only after a failure, because it enters the loader.
void* library_operator(const void* caller, const char* symbol) noexcept {
  Dl_info info;
  const char* const candidates[] = {::dladdr(caller, &info) != 0 ? info.dli_fname : nullptr,
                                    "libstdc++.so.6", "libc++.so.1"};
  const recorder::FaultPause pause;
  void* operator_new = nullptr;
  for (const char* const name : candidates) {
    void* const library = name != nullptr ? g_next.dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (library == nullptr) continue;
    void* const found = real_dlsym()(library, symbol);
    g_next.dlclose(library);
    if (found == nullptr || library_of(found) == library_of(&g_operators)) continue;
    operator_new = found;
    break;
  }
  if (operator_new == nullptr) g_next.dlerror();
  return operator_new;
}

}  // namespace

void report_pending_new() noexcept {
  if (!t_pending.under_way) return;
  const HookScope scope;
  if (!scope.outermost()) return;
  t_pending.under_way = false;
  const KeepErrno keep;
  recorder::on_failure(scope.in_hook(), {Space::heap, Api::operator_new, t_pending.bytes}, ENOMEM,
                       recorder::FailedBy::system);
}

bool is_part_of_new(std::uint64_t bytes) noexcept {
  return t_pending.under_way || (t_pending.made_impossible && bytes > kImpossible / 2);
}

void report_failure(InHook hook, const recorder::Request& request, recorder::FailedBy by) noexcept {
  if (t_reported.bytes != 0 && request.bytes - t_reported.bytes <= t_reported.alignment) {
    t_reported = {};
    return;
  }
  if (t_pending.made_impossible && request.bytes == kImpossible) return;  // its handler retries
  const KeepErrno keep;
  recorder::on_failure(hook, request, ENOMEM, by);
}

void report_failure_outside_scope(Api api, std::uint64_t bytes) noexcept {
  const HookScope scope;
  report_failure(scope.in_hook(), {Space::heap, api, bytes}, recorder::FailedBy::system);
}

void visit_own_new(void (*visit)(const char* symbol, const void* next) noexcept) noexcept {
#define X(symbol, ...)                      \
  if (g_operators.symbol.kind == Kind::own) \
    visit(#symbol, reinterpret_cast<const void*>(g_operators.symbol.next));
  OOMREC_NEW_OPERATORS(X)
  OOMREC_DELETE_OPERATORS(X)
#undef X
}

bool start_operator_new(const void* allocator) noexcept {
#define X(symbol, ...) look_up(g_operators.symbol, #symbol, allocator);
  OOMREC_NEW_OPERATORS(X)
  OOMREC_DELETE_OPERATORS(X)
#undef X
  g_next.dlerror();
  const auto& plain = g_operators._Znwm;
  if (plain.kind == Kind::on_malloc) {
    if (recorder::has_new_rules()) announce_all_new();
    return false;
  }
  g_entered_unwatched = false;
  if (plain.kind == Kind::own) g_next.free(plain.next(1));
  if (g_entered_unwatched) return false;  // it calls the malloc of its library
  const char nothrow = 0;                 // any address will do
  find_whether_on_malloc(g_operators._ZnwmSt11align_val_t);
  find_whether_on_malloc(g_operators._ZnamSt11align_val_t);
  find_whether_on_malloc(g_operators._ZnwmSt11align_val_tRKSt9nothrow_t, &nothrow);
  find_whether_on_malloc(g_operators._ZnamSt11align_val_tRKSt9nothrow_t, &nothrow);
  g_watched[static_cast<std::size_t>(Api::operator_new)] = Watch::on;
  g_watched[static_cast<std::size_t>(Api::operator_delete)] = Watch::on;
  return plain.kind == Kind::own;
}

}  // namespace oomrec::shim

using oomrec::shim::g_operators;
using oomrec::shim::Kind;

#define X(symbol, parameters, arguments, alignment)                                             \
  extern "C" OOMREC_EXPORT void* symbol parameters;                                             \
  void* symbol parameters {                                                                     \
    auto& entry = g_operators.symbol;                                                           \
    if (entry.kind == Kind::unknown) oomrec::shim::look_up_early(entry, #symbol);               \
    if (entry.kind == Kind::on_malloc) return entry.next arguments;                             \
    if (entry.kind == Kind::announced) {                                                        \
      oomrec::recorder::announce_new_call();                                                    \
      return entry.next arguments;                                                              \
    }                                                                                           \
    if (entry.kind == Kind::own) {                                                              \
      const size_t asked = n;                                                                   \
      n = oomrec::shim::enter_own_new(n);                                                       \
      void* const block = entry.next arguments;                                                 \
      oomrec::shim::leave_own_new(block, asked);                                                \
      return block;                                                                             \
    }                                                                                           \
    if (void* const block = oomrec::shim::new_by_malloc(n, alignment)) return block;            \
    void* const library = oomrec::shim::library_operator(__builtin_return_address(0), #symbol); \
    if (library == nullptr) return nullptr;                                                     \
    oomrec::shim::t_reported = {n, alignment};                                                  \
    oomrec::recorder::fail_new_again();                                                         \
    void* const block = reinterpret_cast<void*(*)parameters>(library) arguments;                \
    oomrec::shim::t_reported = {};                                                              \
    return block;                                                                               \
  }
OOMREC_NEW_OPERATORS(X)
#undef X

#define X(symbol, parameters, arguments)                                          \
  extern "C" OOMREC_EXPORT void symbol parameters;                                \
  void symbol parameters {                                                        \
    auto& entry = g_operators.symbol;                                             \
    if (entry.kind == Kind::unknown) oomrec::shim::look_up_early(entry, #symbol); \
    if (entry.kind == Kind::on_malloc) return entry.next arguments;               \
    if (entry.kind == Kind::missing) return hook_free(block);                     \
    oomrec::shim::observe_release(oomrec::Api::operator_delete, block,            \
                                  [&] { entry.next arguments; });                 \
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
OOMREC_DELETE_OPERATORS(X)
#pragma GCC diagnostic pop
#undef X
