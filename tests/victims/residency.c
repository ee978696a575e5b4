/* Grows until it is killed, beside memory that it has requested but does not have.
 * argv[1]: what else it requests; argv[2]: MiB to grow to (0: until the end), then it pauses.
 * argv[3]: "late": fills it then; "exit": does not pause. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static char* map(void* hint, size_t bytes, int more_flags) {
  char* p =
      mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  if (p == MAP_FAILED) exit(2);
  return p;
}

static char* untouched(void) { return map(NULL, 384 * MIB, 0); }
static char* untouched_block(void) { return malloc(384 * MIB); }
static char* touched_part(void) {
  char* p = map(NULL, 400 * MIB, 0);
  memset(p + 100 * MIB, 1, 8 * MIB);
  return p;
}
static char* given_back(void) {
  char* p = map(NULL, 80 * MIB, 0);
  memset(p, 1, 80 * MIB);
  madvise(p, 80 * MIB, MADV_DONTNEED);
  return p;
}
static char* only_read(void) { /* the page of zeros costs nothing */
  char* p = map(NULL, 384 * MIB, 0);
  for (size_t at = 0; at < 384 * MIB; at += 4096)
    if (p[at] != 0) exit(3);
  return p;
}

/* A file in memory that is mapped nowhere. */
static void grow_file(void) {
  static int fd = -1;
  static char zeros[1 << 20];
  if (fd < 0) fd = memfd_create("spool", 0);
  if (write(fd, zeros, sizeof zeros) != sizeof zeros) exit(2);
}

static char* blocks[4096];
static void grow(size_t i) {
  blocks[i] = map(NULL, MIB, 0);
  memset(blocks[i], 1, MIB);
}

/* As mimalloc's: a GiB that is writable from the start, and used bit by bit. */
static char* reserve(int is_hinted) {
  return map(is_hinted ? (void*)((size_t)0x20 << 40) : NULL, 1024 * MIB, MAP_NORESERVE);
}

/* As V8 does with its code: all of it writable at once, and nothing touched but a part. */
static char* made_writable(void) {
  char* p = mmap(NULL, 512 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mprotect(p + MIB, 511 * MIB, PROT_READ | PROT_WRITE) != 0) exit(2);
  madvise(p + MIB, 511 * MIB, MADV_DONTNEED);
  memset(p + 100 * MIB, 1, 8 * MIB);
  return p;
}

static int fill_next(char* reserved, size_t i) {
  memset(reserved + i * MIB, 1, MIB);
  void* occasion = malloc(100000); /* to look */
  const int is_refused = occasion == NULL;
  free(occasion);
  return is_refused;
}

/* What the blocks weigh is told apart from it. */
static char* touched_reservation(void) {
  char* p = reserve(0);
  memset(p, 1, 60 * MIB);
  return p;
}

/* Pages that the kernel takes back before it kills. */
static char* read_file(void) {
  char name[200];
  snprintf(name, sizeof name, "%s/read_fileXXXXXX", getenv("ON_DISK"));
  static char zeros[1 << 20];
  const int fd = mkstemp(name);
  for (int i = 0; i < 60; ++i)
    if (write(fd, zeros, sizeof zeros) != sizeof zeros) exit(2);
  if (fsync(fd) != 0) exit(2);
  char* p = mmap(NULL, 60 * MIB, PROT_READ, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) exit(2);
  unlink(name);
  volatile char sum = 0;
  for (size_t at = 0; at < 60 * MIB; at += 4096) sum += p[at];
  return p;
}

static void grow_blocks(size_t i) {
  blocks[i] = malloc(MIB / 2);
  memset(blocks[i], 1, MIB / 2);
}

/* Of an allocator that maps its own memory, if one is loaded. */
static void grow_small(size_t i) {
  for (size_t j = 0; j < 512; ++j) {
    char** p = malloc(2048);
    memset(p, 1, 2048);
    *p = blocks[i];
    blocks[i] = (char*)p;
  }
}

/* As small as a block can be. */
static void grow_tiny(void) {
  for (size_t j = 0; j < 32768; ++j)
    if (malloc(24) == NULL) exit(2);
}

/* One block that becomes larger in each step. */
static void grow_block(size_t i) {
  blocks[0] = realloc(blocks[0], (i + 1) * MIB / 2);
  memset((char*)blocks[0] + i * MIB / 2, 1, MIB / 2);
}

/* Of a coroutine: as large as a thread's, of which it uses little. */
static void grow_coroutines(size_t i) {
  blocks[i] = map(NULL, 8 * MIB, MAP_STACK);
  if (mprotect(blocks[i], 4096, PROT_NONE) != 0) exit(2);
  memset(blocks[i] + 7 * MIB, 1, MIB);
}

/* As PHP's strings of 1 MiB: rounded up to twice as much. */
static void grow_half(size_t i) {
  blocks[i] = map(NULL, 2 * MIB, 0);
  memset(blocks[i], 1, MIB);
}

static pthread_barrier_t are_full;
static void* deep(void* unused) {
  volatile char local[6 * MIB];
  memset((char*)local, 1, sizeof local);
  pthread_barrier_wait(&are_full);
  pause();
  return local[0] ? unused : NULL;
}
static void many_stacks(void) {
  enum { STACKS = 16 };
  pthread_t thread;
  pthread_barrier_init(&are_full, NULL, STACKS + 1);
  for (int i = 0; i < STACKS; ++i)
    if (pthread_create(&thread, NULL, deep, NULL) != 0) exit(2);
  pthread_barrier_wait(&are_full);
}

static char* fill_last(void) {
  char* p = map(NULL, 100 * MIB, 0);
  memset(p, 1, 100 * MIB);
  return p;
}

/* Killed while it is filled: no call of ours in between. */
static char* fill_at_once(void) {
  char* p = map(NULL, 300 * MIB, 0);
  memset(p, 1, 300 * MIB);
  return p;
}

/* By an allocator that asks the kernel itself: no hook sees it. */
static char* fill_raw_at_once(void) {
  char* p = (char*)syscall(SYS_mmap, NULL, 300 * MIB, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, (long)0);
  if (p == MAP_FAILED) exit(2);
  memset(p, 1, 300 * MIB);
  return p;
}

/* What an allocator has kept free, and gives back while the program grows: at its limit. */
static char* kept_free(void) {
  char* p = map(NULL, 60 * MIB, 0);
  memset(p, 1, 60 * MIB);
  return p;
}
static void give_back_at_limit(char* p, size_t i) {
  const size_t at_limit = 82;
  if (i < at_limit || i >= at_limit + 60) return;
  madvise(p + (i - at_limit) * MIB, MIB, MADV_DONTNEED);
  usleep(50000); /* time for looks, on a busy machine, too */
}

static char* touched_before(void) {
  char* p = map(NULL, 40 * MIB, 0);
  memset(p, 1, 40 * MIB);
  return p;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const size_t until = argc > 2 ? (size_t)atoi(argv[2]) : 0;
  static char* kept;
  char* reserved = NULL;
  if (strcmp(what, "untouched") == 0) kept = untouched();
  if (strcmp(what, "untouched_block") == 0) kept = untouched_block();
  if (strcmp(what, "touched_part") == 0) kept = touched_part();
  if (strcmp(what, "halves") == 0) kept = map(NULL, 128 * MIB, 0);
  if (strcmp(what, "given_back") == 0) kept = given_back();
  if (strcmp(what, "made_writable") == 0) kept = made_writable();
  if (strcmp(what, "only_read") == 0) kept = only_read();
  if (strcmp(what, "reservation") == 0) reserved = reserve(1);
  if (strcmp(what, "reservation_anywhere") == 0) reserved = reserve(0);
  if (strcmp(what, "beside_reservation") == 0) kept = touched_reservation();
  if (strcmp(what, "beside_file") == 0) kept = read_file();
  if (strcmp(what, "beside_stacks") == 0) many_stacks();
  if (strcmp(what, "kept_free") == 0) kept = kept_free();
  if (strcmp(what, "raw") == 0) kept = fill_raw_at_once();
  if (strcmp(what, "at_once") == 0) kept = untouched();
  if (strcmp(what, "all_at_once") == 0) kept = touched_before();
  if (kept != NULL && strstr(what, "at_once") != NULL) kept = fill_at_once();
  for (size_t i = 0; until == 0 || i < until; ++i) {
    if (what[0] == 'b') {
      grow_blocks(i);
    } else if (strcmp(what, "resized") == 0) {
      grow_block(i);
    } else if (strcmp(what, "halves") == 0) {
      grow_half(i);
    } else if (strcmp(what, "tiny") == 0) {
      grow_tiny();
    } else if (strcmp(what, "file") == 0) {
      grow_file();
    } else if (strcmp(what, "coroutines") == 0) {
      grow_coroutines(i);
    } else if (strcmp(what, "small") == 0) {
      grow_small(i);
    } else if (reserved != NULL) {
      if (fill_next(reserved, i)) return 0;
    } else {
      if (strcmp(what, "kept_free") == 0) give_back_at_limit(kept, i);
      grow(i);
    }
    usleep(3000);
  }
  if (strcmp(what, "fill_last") == 0) kept = fill_last();
  if (strcmp(what, "untouched") == 0 && argc > 3 && strcmp(argv[3], "late") == 0)
    memset(kept, 1, 384 * MIB);
  puts("grown");
  fflush(stdout);
  if (argc > 3 && strcmp(argv[3], "exit") == 0) return 0;
  pause();
  return kept != NULL;
}
