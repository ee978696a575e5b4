/* Links the CUDA driver: gpu_linked. Calls it directly, looks its functions up, and calls the
 * results. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "marks.h"

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(void** block, size_t bytes);

static void print_found(const char* way, void* found) {
  Dl_info info;
  if (found == NULL || dladdr(found, &info) == 0)
    printf("%s: nothing\n", way);
  else
    printf("%s: in %s\n", way, strrchr(info.dli_fname, '/') + 1);
}

int main(void) {
  void *context = NULL, *block = NULL;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  for (int i = 0; i < 3; i++) printf("result %d\n", cuMemAlloc_v2(&block, 1 << 20));
  void* const by_default = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  void* const by_next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  print_found("RTLD_DEFAULT", by_default);
  print_found("RTLD_NEXT", by_next);
  printf("result %d\n", ((int (*)(void**, size_t))by_default)(&block, 1 << 20));
  printf("result %d\n", ((int (*)(void**, size_t))by_next)(&block, 1 << 20));
  mark("allocated");
  return 0;
}
