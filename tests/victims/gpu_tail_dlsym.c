/* The C part of gpu_tail_dlsym.S. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef __aarch64__
#define OLDEST_GLIBC "GLIBC_2.17"
#else
#define OLDEST_GLIBC "GLIBC_2.2.5"
#endif

__attribute__((visibility("hidden"))) unsigned long tail_dlsym_look_ups;
__attribute__((visibility("hidden"))) void* tail_dlsym_next;

__attribute__((visibility("hidden"))) void tail_dlsym_find_next(void) {
  tail_dlsym_next = dlvsym(RTLD_NEXT, "dlsym", OLDEST_GLIBC);
}

__attribute__((destructor)) static void end(void) {
  fprintf(stderr, "the other dlsym saw look-ups: %s\n", tail_dlsym_look_ups > 0 ? "yes" : "no");
}
