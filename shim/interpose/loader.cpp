#include "shim/interpose/loader.h"

#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

#include "older_glibc/loader.h"

namespace oomrec::shim {
namespace {

constinit std::atomic<Dlsym> g_real{nullptr};

}  // namespace

Dlsym real_dlsym() noexcept {
  if (const Dlsym known = g_real.load(std::memory_order_relaxed)) return known;
  void* found = nullptr;
  if (oomrec_lacks_libdl() != 0) found = reinterpret_cast<void*>(&oomrec_dlsym_without_libdl);
  // The oldest version of each architecture, which every glibc has: see may_be_missing() in
  // next.cpp.
  for (const char* const version : {"GLIBC_2.2.5", "GLIBC_2.17"})
    if (found == nullptr) found = ::dlvsym(RTLD_NEXT, "dlsym", version);
  // Another C library resolves this name to its own dlsym, not to ours.
  const Dlsym real = found != nullptr ? reinterpret_cast<Dlsym>(found) : ::dlsym;
  g_real.store(real, std::memory_order_relaxed);
  return real;
}

void for_each_module(VisitModule* visit, void* data) noexcept {
  using Iterate = int(VisitModule*, void*);
  void* const found = real_dlsym()(RTLD_DEFAULT, "dl_iterate_phdr");
  if (found != nullptr) reinterpret_cast<Iterate*>(found)(visit, data);
}

}  // namespace oomrec::shim
