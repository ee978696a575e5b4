/* other_frees FUNCTION: frees all its blocks by free_sized, free_aligned_sized, cfree, dallocx or
 * sdallocx, or has them from mallocx and rallocx, five times 20 MB. Without the recorder, a C
 * library may not have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 20000 };
static void* volatile blocks[kBlocks];

void free_sized(void*, size_t) __attribute__((weak));
void free_aligned_sized(void*, size_t, size_t) __attribute__((weak));
void cfree(void*) __attribute__((weak));
void dallocx(void*, int) __attribute__((weak));
void sdallocx(void*, size_t, int) __attribute__((weak));
void* mallocx(size_t, int) __attribute__((weak));
void* rallocx(void*, size_t, int) __attribute__((weak));

static size_t size_of(size_t i) { return 1000 + i % 64; }

int main(int count, char** words) {
  const char* const how = count > 1 ? words[1] : "";
  const int sized = strcmp(how, "free_sized") == 0 && free_sized;
  const int aligned = strcmp(how, "free_aligned_sized") == 0 && free_aligned_sized;
  const int old = strcmp(how, "cfree") == 0 && cfree;
  const int flagged = strcmp(how, "dallocx") == 0 && dallocx;
  const int both = strcmp(how, "sdallocx") == 0 && sdallocx;
  const int made = strcmp(how, "mallocx") == 0 && mallocx && rallocx && dallocx;
  if (!sized && !aligned && !old && !flagged && !both && !made) return puts("not there") < 0;
  for (int round = 0; round < 5; ++round) {
    for (size_t i = 0; i < kBlocks; ++i) {
      const size_t n = size_of(i) & ~(size_t)63;
      blocks[i] = aligned ? aligned_alloc(64, n)
                  : made  ? rallocx(mallocx(500, 6 | 64), size_of(i), 6)
                          : malloc(size_of(i));
      if (blocks[i] == NULL) return puts("refused") < 0;
    }
    for (size_t i = 0; i < kBlocks; ++i) {
      if (sized) free_sized(blocks[i], size_of(i));
      if (aligned) free_aligned_sized(blocks[i], 64, size_of(i) & ~(size_t)63);
      if (old) cfree(blocks[i]);
      if (flagged || made) dallocx(blocks[i], 0);
      if (both) sdallocx(blocks[i], size_of(i), 0);
    }
  }
  return puts("done") < 0;
}
