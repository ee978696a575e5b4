// dlopen in a program that was attached to: the new modules call our hooks, too.
//
// For a name without a slash, or with $ORIGIN, the loader searches where its caller's module says.
// Such a call ends in a jump, so that the caller stays the program's; its modules are redirected at
// the program's next lookup in them.
#include <dlfcn.h>
#include <string.h>

#include "common/system/hook_scope.h"
#include "shim/attach/dlopen.h"
#include "shim/attach/redirections.h"

namespace oomrec::shim {
namespace {

using Dlopen = void*(const char*, int);
constinit Dlopen* g_next_dlopen = nullptr;

bool depends_on_caller(const char* file) noexcept {
  return file == nullptr || ::strchr(file, '/') == nullptr || ::strchr(file, '$') != nullptr;
}

[[gnu::noinline]] void* open_and_redirect(const char* file, int flags) noexcept {
  void* const library = g_next_dlopen(file, flags);
  const KeepErrno keep;
  redirect_new_modules();
  return library;
}

void* hook_dlopen(const char* file, int flags) {
  if (depends_on_caller(file)) return g_next_dlopen(file, flags);
  return open_and_redirect(file, flags);
}

}  // namespace

void redirect_dlopen(const void* next) noexcept {
  g_next_dlopen = reinterpret_cast<Dlopen*>(const_cast<void*>(next));
  add_redirection("dlopen", next, reinterpret_cast<const void*>(&hook_dlopen));
}

}  // namespace oomrec::shim
