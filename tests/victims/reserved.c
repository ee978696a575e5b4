/* Three functions touch a reservation one right after the other, as allocators do that have their
 * own; then finish() grows by blocks. argv[1]: how they touch it. argv[2]: MiB that finish() gets,
 * before it pauses; 0: until the end. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static char* map(size_t bytes, int more_flags) {
  char* p =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  if (p == MAP_FAILED) exit(2);
  return p;
}

static char* reserved;
static size_t used;
static int is_one_call, has_small_blocks;

static void occasion(void) { /* an event: the recorder may read its clock */
  void* block = malloc(100000);
  if (block == NULL) exit(2);
  free(block);
}

/* Few of them are sampled. */
static void small_blocks(void) {
  for (int i = 0; i < 40; ++i) {
    void* volatile block = malloc(100);
    if (block == NULL) exit(2);
    free(block);
  }
}

static void touch(size_t mib) {
  for (size_t i = 0; i < mib; ++i) {
    memset(reserved + used, 1, MIB);
    used += MIB;
    usleep(1000); /* each function runs for many ticks, on a busy machine, too */
    if (has_small_blocks)
      small_blocks();
    else if (!is_one_call)
      occasion();
  }
  if (is_one_call) occasion();
}

static void first(void) { touch(120); }
static void second(void) { touch(60); }
static void third(void) { touch(40); }

/* In a mapping that is on record. */
static char* counted(void) {
  char* p = map(150 * MIB, 0);
  for (size_t i = 0; i < 150; ++i) {
    memset(p + i * MIB, 1, MIB);
    occasion();
  }
  return p;
}

static void briefly(void) {
  for (int i = 0; i < 10; ++i) {
    touch(10);
    used -= 10 * MIB;
    madvise(reserved + used, 10 * MIB, MADV_DONTNEED);
    occasion();
  }
}

/* One touches twenty times as much, in a quarter of the time. */
static void heavy(void) {
  memset(reserved + used, 1, 20 * MIB);
  used += 20 * MIB;
  usleep(20000);
  occasion();
}
static void light(void) {
  memset(reserved + used, 1, MIB);
  used += MIB;
  usleep(80000);
  occasion();
}

static void* finish(size_t mib) {
  void** last = NULL;
  for (size_t i = 0; mib == 0 || i < 2 * mib; ++i) {
    void** block = malloc(MIB / 2);
    if (block == NULL) exit(2);
    memset(block, 1, MIB / 2);
    *block = last;
    last = block;
    usleep(1000);
  }
  return last;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  reserved = map(1024 * MIB, MAP_NORESERVE);
  is_one_call = strcmp(what, "one_call") == 0;
  has_small_blocks = strcmp(what, "small_blocks") == 0;
  occasion(); /* what is touched until now is the doing of who reserved */
  char* p = NULL;
  first();
  if (strcmp(what, "beside_counted") == 0) p = counted();
  if (strcmp(what, "beside_brief") == 0) briefly();
  for (int i = 0; i < 10 && strcmp(what, "by_turns") == 0; ++i) {
    heavy();
    light();
  }
  second();
  third();
  void* last = finish(argc > 2 ? (size_t)atoi(argv[2]) : 0);
  if (write(STDOUT_FILENO, "grown\n", 6) != 6) return 2;
  pause();
  return p != NULL && last != NULL;
}
