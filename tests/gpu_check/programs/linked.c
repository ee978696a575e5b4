// A program linked with the CUDA driver: fills the device, and frees everything.
// Its own declarations: a machine with a driver need not have the vendor's headers.
#include <stdio.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuMemGetInfo_v2(size_t* free, size_t* total);
int cuMemAlloc_v2(unsigned long long* block, size_t bytes);
int cuMemFree_v2(unsigned long long block);

enum { kBlocks = 4096, kOutOfMemory = 2 };
static unsigned long long g_held[kBlocks];

// Allocates blocks until one fails, and returns how many fit.
static int fill(size_t step, size_t bound, int* result) {
  int count = 0;
  *result = 0;
  while (count < kBlocks && count * step <= bound) {
    *result = cuMemAlloc_v2(&g_held[count], step);
    if (*result != 0) break;
    ++count;
  }
  return count;
}

int main(void) {
  void* context = NULL;
  size_t free_bytes = 0, total = 0;
  if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0) return 1;
  if (cuCtxSetCurrent(context) != 0 || cuMemGetInfo_v2(&free_bytes, &total) != 0) return 1;
  const size_t step = free_bytes / 64 < (256u << 20) ? free_bytes / 16 : 256u << 20;
  int result = 0;
  const int count = fill(step, free_bytes, &result);
  for (int i = 0; i < count; ++i) cuMemFree_v2(g_held[i]);
  printf("{\"held\": %zu, \"result\": %d}\n", count * step, result);
  return result == kOutOfMemory ? 0 : 1;
}
