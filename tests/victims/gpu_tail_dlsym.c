/* The C part of gpu_tail_dlsym.S. */
#include <dlfcn.h>
#include <stdio.h>

__attribute__((visibility("hidden"))) unsigned long tail_dlsym_look_ups;
__attribute__((visibility("hidden"))) void* tail_dlsym_next;

__attribute__((visibility("hidden"))) void tail_dlsym_find_next(void) {
  tail_dlsym_next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}

__attribute__((destructor)) static void end(void) {
  fprintf(stderr, "the other dlsym saw look-ups: %s\n", tail_dlsym_look_ups > 0 ? "yes" : "no");
}
