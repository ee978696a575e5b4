/* Has weak references to functions of drivers, and loads none. */
#include <stddef.h>
#include <stdio.h>

int cuMemAlloc_v2(void** block, size_t bytes) __attribute__((weak));
int hipMalloc(void** block, size_t bytes) __attribute__((weak));

static int call(int (*allocate)(void**, size_t)) {
  void* block = NULL;
  return allocate == NULL ? -1 : allocate(&block, 1 << 20);
}

int main(void) {
  printf("%d %d\n", call(cuMemAlloc_v2), call(hipMalloc));
  return 0;
}
