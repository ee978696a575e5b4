/* Writes to shared file mappings beyond the capacity of the memory file system, or to missing pages
 * for another reason. Arguments: the way, a directory.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "impossible_sizes.h"

enum { kMiB = 1 << 20 };
static const char* directory;
static int fd;

static char* map_file(const char* name, size_t bytes) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) exit(1);
  char* const pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pages == MAP_FAILED) exit(1);
  return pages;
}

static void fill_too_much(void) {
  char* const pages = map_file("too_much", 128 * kMiB);
  memset(pages, 1, 128 * kMiB);
}

/* Each fits alone when it is mapped. */
static void fill_pieces(void) {
  char* const first = map_file("first", 40 * kMiB);
  char* const second = map_file("second", 40 * kMiB);
  memset(first, 1, 40 * kMiB);
  memset(second, 1, 40 * kMiB);
}

/* Enough live memory for a bundle. */
static void hold(void) { memset(malloc(20 * kMiB), 1, 20 * kMiB); }

static void fill_truncated(void) {
  hold();
  char* const pages = map_file("truncated", kMiB);
  memset(pages, 1, kMiB);
  if (ftruncate(fd, 0) != 0) exit(1);
  memset(pages, 1, kMiB);
}

/* The mapping that does not fit was never written to. */
static void fill_another(void) {
  munmap(map_file("too_much", 128 * kMiB), 128 * kMiB);
  fill_truncated();
}

static void fill_after_refusal(void) {
  char* const pages = map_file("too_much", 128 * kMiB);
  if (malloc(TOO_MUCH) == NULL) memset(pages, 1, 128 * kMiB);
}

static void raise_bus(void) {
  hold();
  map_file("fits", kMiB);
  raise(SIGBUS);
}

/* The file does not fit, but a signal from another process ends it, which the recorder notices. */
static void wait_for_signal(void) {
  hold();
  map_file("too_much", 128 * kMiB);
  if (malloc(TOO_MUCH) != NULL) exit(1);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}

int main(int count, char** words) {
  static const struct {
    const char* way;
    void (*fill)(void);
  } kWays[] = {{"too_much", fill_too_much},
               {"pieces", fill_pieces},
               {"truncated", fill_truncated},
               {"another", fill_another},
               {"after_refusal", fill_after_refusal},
               {"raise", raise_bus},
               {"wait", wait_for_signal}};
  if (count < 3) return 2;
  directory = words[2];
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i)
    if (strcmp(kWays[i].way, words[1]) == 0) kWays[i].fill();
  return 9;
}
