/* A library that links the CUDA driver, and looks functions up for the program that opened it.
 */
#include <dlfcn.h>

extern int cuMemFree_v2(unsigned long long block);
__attribute__((visibility("default"))) int (*const kept_by_plugin)(unsigned long long) =
    cuMemFree_v2;

__attribute__((visibility("default"))) void* look_by_default(const char* name) {
  void* volatile const found = dlsym(RTLD_DEFAULT, name); /* no tail call: it checks the caller */
  return found;
}
