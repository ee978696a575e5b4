#include "older_glibc/loader.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

// What the old libdl is made of. Without a version, because newer glibcs and other C libraries lack
// them.
#define IN_OLD_LIBC __attribute__((weak))
IN_OLD_LIBC void* _dl_sym(void* library, const char* name, const void* caller);
IN_OLD_LIBC int _dl_addr(const void* address, Dl_info* info, void** module, void** symbol);
IN_OLD_LIBC void* __libc_dlopen_mode(const char* name, int mode);
#define OPENED_BY_DLOPEN ((int)0x80000000)  // the loader's __RTLD_DLOPEN

#pragma GCC visibility push(hidden)

// loader.S: dlvsym, if the program is linked with it.
void* oomrec_linked_dlvsym(void);

static void* g_libdl = NULL;

struct Lookup {
  void* library;
  const char* name;
  void* found;
};

static void look_up(void* lookup) {
  struct Lookup* const one = lookup;
  one->found = _dl_sym(one->library, one->name, (const void*)&look_up);
}

// Also in newer glibcs, so that a reference to it would be one to their private version: it is
// looked up.
typedef int CatchError(const char** object, const char** error, bool* is_allocated,
                       void (*call)(void*), void* arguments);

static void* find(void* library, const char* name) {
  CatchError* const catch_error =
      (CatchError*)_dl_sym(RTLD_DEFAULT, "_dl_catch_error", (const void*)&look_up);
  struct Lookup lookup = {library, name, NULL};
  const char *object = NULL, *error = NULL;
  bool is_allocated = false;
  catch_error(&object, &error, &is_allocated, look_up, &lookup);
  if (is_allocated) free((void*)error);
  return lookup.found;
}

int oomrec_lacks_libdl(void) { return oomrec_linked_dlvsym() == NULL && _dl_sym != NULL; }

// With RTLD_GLOBAL the loader, which is about to call the other constructors, would count one that
// it does not have.
void oomrec_load_libdl(void) {
  if (__libc_dlopen_mode != NULL)
    g_libdl = __libc_dlopen_mode("libdl.so.2", RTLD_NOW | OPENED_BY_DLOPEN);
}

// As if we were linked with libdl. A plugin of the program may need it later: its calls of our
// dlopen, dlsym and dlclose go on to the next ones, which are these.
void* oomrec_dlsym_without_libdl(void* library, const char* name) {
  void* const found = find(library, name);
  return found == NULL && library == RTLD_NEXT && g_libdl != NULL ? find(g_libdl, name) : found;
}

// Where loader.S goes for a function with which the program is not linked.
#define FALL_BACK(type, name, parameters)                       \
  __attribute__((used)) type oomrec_fallback_##name parameters; \
  type oomrec_fallback_##name parameters

FALL_BACK(int, dladdr, (const void* address, Dl_info* info)) {
  return _dl_addr != NULL ? _dl_addr(address, info, NULL, NULL) : 0;
}

FALL_BACK(int, dladdr1, (const void* address, Dl_info* info, void** extra, int flags)) {
  if (_dl_addr == NULL) return 0;
  return _dl_addr(address, info, flags == RTLD_DL_LINKMAP ? extra : NULL,
                  flags == RTLD_DL_SYMENT ? extra : NULL);
}

FALL_BACK(void*, dlvsym, (void* library, const char* name, const char* version)) {
  (void)library, (void)name, (void)version;
  return NULL;
}
