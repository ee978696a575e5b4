// dlopen and dlmopen: libraries whose calls the loader does not bind to us.
//
// In a program that was attached to, the new modules of each dlopen are redirected; in one that
// started with this library, those of dlopen with RTLD_DEEPBIND. A library in a namespace of its
// own (dlmopen) has a C library and a heap of its own, which our functions must not serve: it is
// named in the recording.
//
// For a name without a slash, or with $ORIGIN, the loader searches where its caller's module says.
// Such a call ends in a jump, so that the caller stays the program's; the rest is done at the
// program's next lookup in the library.
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <atomic>

#include "common/system/hook_scope.h"
#include "recorder/recorder.h"
#include "shim/gpu/driver.h"
#include "shim/interpose/export.h"
#include "shim/interpose/loader.h"
#include "shim/interpose/next.h"
#include "shim/interpose/redirections.h"

namespace oomrec::shim {
namespace {

constexpr unsigned long long kNone = ~0ULL;

// Libraries that were opened by a jump, until the program's next lookup.
struct Opened {
  std::atomic<unsigned long long> loads_before{kNone};     // by RTLD_DEEPBIND; kNone: there is none
  std::atomic<bool> several{false};                        // and further ones since
  std::atomic<bool> in_namespace{false};                   // by dlmopen
  std::atomic<unsigned> deep_begun{0}, deep_under_way{0};  // calls with RTLD_DEEPBIND
};
constinit Opened g_opened{};

bool has_opened_by_jump() noexcept {
  return g_opened.loads_before.load(std::memory_order_acquire) != kNone;
}

bool depends_on_caller(const char* file) noexcept {
  return file == nullptr || ::strchr(file, '/') == nullptr || ::strchr(file, '$') != nullptr;
}

bool is_in_other_namespace(void* library) noexcept {
  // Before glibc 2.34 it is in libdl.
  using Dlinfo = int(void*, int, void*);
  auto* const ask = reinterpret_cast<Dlinfo*>(real_dlsym()(RTLD_DEFAULT, "dlinfo"));
  Lmid_t in = LM_ID_BASE;
  return ask != nullptr && ask(library, RTLD_DI_LMID, &in) == 0 && in != LM_ID_BASE;
}

// The program's first lookup in a library since it has opened one with RTLD_DEEPBIND is likely in
// that one. A library in another namespace says so itself.
void on_lookup(void* library) noexcept {
  if (library == RTLD_DEFAULT || library == RTLD_NEXT) return;
  const LoaderScope loader;
  if (g_opened.in_namespace.load(std::memory_order_relaxed) && is_in_other_namespace(library)) {
    g_opened.in_namespace.store(false, std::memory_order_relaxed);
    recorder::record_other_namespace(loader.scope().in_hook(),
                                     static_cast<const link_map*>(library)->l_name);
  }
  const unsigned long long loads_before =
      g_opened.loads_before.exchange(kNone, std::memory_order_acq_rel);
  const bool several = g_opened.several.exchange(false, std::memory_order_acq_rel);
  if (loads_before != kNone) redirect_deep_bound(several ? nullptr : library, loads_before);
  if (!g_opened.in_namespace.load(std::memory_order_relaxed))
    gpu::g_before_lookup.store(nullptr, std::memory_order_relaxed);
}

void wait_for_lookup() noexcept {
  if (!is_redirecting()) gpu::g_before_lookup.store(on_lookup, std::memory_order_relaxed);
}

[[gnu::noinline]] void record_deep_opening() noexcept {
  const KeepErrno keep;
  unsigned long long none = kNone;
  if (!g_opened.loads_before.compare_exchange_strong(none, loads_so_far(),
                                                     std::memory_order_acq_rel))
    g_opened.several.store(true, std::memory_order_release);
  wait_for_lookup();
}

[[gnu::noinline]] void* open_and_redirect(const char* file, int flags) {
  void* const library = g_next.dlopen(file, flags);
  const KeepErrno keep;
  redirect_new_modules();
  return library;
}

// What it has loaded may be another thread's, and bound in another order, if that has opened a
// library with RTLD_DEEPBIND meanwhile.
[[gnu::noinline]] void* open_deep_bound(const char* file, int flags) {
  const unsigned long long loads_before = loads_so_far();
  const unsigned number = g_opened.deep_begun.fetch_add(1, std::memory_order_acq_rel) + 1;
  const bool is_first = g_opened.deep_under_way.fetch_add(1, std::memory_order_acq_rel) == 0;
  void* const library = g_next.dlopen(file, flags);
  g_opened.deep_under_way.fetch_sub(1, std::memory_order_acq_rel);
  if (library == nullptr) return nullptr;  // dlerror() is to say why
  const bool is_alone = is_first && !has_opened_by_jump() &&
                        g_opened.deep_begun.load(std::memory_order_acquire) == number;
  const bool is_bound = (flags & RTLD_NOW) != 0;  // all words are: no need to look anything up
  const LoaderScope loader;
  redirect_deep_bound(is_bound || !is_alone ? nullptr : library, loads_before);
  return library;
}

}  // namespace

OOMREC_HOOK(void*, dlopen, (const char* file, int flags)) {
  const bool is_deep = (flags & RTLD_DEEPBIND) != 0;
  if (has_opened_by_jump()) [[unlikely]]
    g_opened.several.store(true, std::memory_order_release);
  if (depends_on_caller(file)) {
    if (is_deep && !is_redirecting()) record_deep_opening();
    return g_next.dlopen(file, flags);
  }
  if (is_redirecting()) return open_and_redirect(file, flags);
  return is_deep ? open_deep_bound(file, flags) : g_next.dlopen(file, flags);
}

OOMREC_HOOK(void*, dlmopen, (long of_namespace, const char* file, int flags)) {
  if (of_namespace != LM_ID_BASE) {
    g_opened.in_namespace.store(true, std::memory_order_relaxed);
    wait_for_lookup();
  }
  return g_next.dlmopen(of_namespace, file, flags);
}

}  // namespace oomrec::shim
