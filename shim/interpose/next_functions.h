// All hooked C functions. The library itself calls the next definition of the same name, in
// whatever library. Also read by the assembler (entries.S).
#pragma once

// clang-format off
// These take a handler and return the previous one.
#define OOMREC_OLD_SIGNAL_FUNCTIONS(X) \
  X(sighandler_t, signal,        (int number, sighandler_t handler),                  (number, handler)) \
  X(sighandler_t, bsd_signal,    (int number, sighandler_t handler),                  (number, handler)) \
  X(sighandler_t, ssignal,       (int number, sighandler_t handler),                  (number, handler)) \
  X(sighandler_t, sysv_signal,   (int number, sighandler_t handler),                  (number, handler)) \
  X(sighandler_t, __sysv_signal, (int number, sighandler_t handler),                  (number, handler)) \
  X(sighandler_t, sigset,        (int number, sighandler_t handler),                  (number, handler))

#define OOMREC_LONG_JUMPS(X) \
  X(void, longjmp,       (void* target, int value), (target, value)) \
  X(void, _longjmp,      (void* target, int value), (target, value)) \
  X(void, siglongjmp,    (void* target, int value), (target, value)) \
  X(void, __longjmp_chk, (void* target, int value), (target, value))

// C23's and jemalloc's, which tcmalloc has, too: where there is none, free() does it.
#define OOMREC_SIZED_FREES(X) \
  X(void,    dallocx,            (void* block, int flags),                            (block, flags)) \
  X(void,    sdallocx,           (void* block, size_t n, int flags),                  (block, n, flags)) \
  X(void,    free_sized,         (void* block, size_t n),                             (block, n)) \
  X(void,    free_aligned_sized, (void* block, size_t alignment, size_t n),           (block, alignment, n))

// jemalloc's. Where there is none, malloc() and its relatives do it: a program that finds the name may call it.
#define OOMREC_FLAGGED_ALLOCATORS(X) \
  X(void*,   mallocx,            (size_t n, int flags),                               (n, flags)) \
  X(void*,   rallocx,            (void* block, size_t n, int flags),                  (block, n, flags))

// They return a new block. The C library's call malloc, an allocator's own may not.
#define OOMREC_COPYING_FUNCTIONS(X) \
  X(char*,   strdup,             (const char* text),                                  (text)) \
  X(char*,   strndup,            (const char* text, size_t n),                        (text, n)) \
  X(char*,   realpath,           (const char* path, char* resolved),                  (path, resolved))

// What a glibc from 2.28 on may not have, or only in libpthread or libdl.
#define OOMREC_OPTIONAL_FUNCTIONS(X) \
  X(pid_t,   _Fork,              (),                                                  ()) \
  X(int,     execveat,           (int directory, const char* path, char* const* arguments, \
                                  char* const* environment, int flags), \
                                 (directory, path, arguments, environment, flags)) \
  X(int,     pthread_create,     (pthread_t* thread, const pthread_attr_t* attributes, \
                                  void* (*start)(void*), void* argument), \
                                 (thread, attributes, start, argument)) \
  X(void*,   dlopen,             (const char* file, int flags),                       (file, flags)) \
  X(void*,   dlmopen,            (long of_namespace, const char* file, int flags),    (of_namespace, file, flags)) \
  X(int,     dlclose,            (void* library),                                     (library)) \
  X(char*,   dlerror,            (),                                                  ()) \
  OOMREC_SIZED_FREES(X) \
  OOMREC_FLAGGED_ALLOCATORS(X)

// The C library's allocator by its own names. Other allocators have some of them, too.
#define OOMREC_LIBC_NAMES(X) \
  X(void*,   __libc_malloc,      (size_t n),                                          (n)) \
  X(void*,   __libc_calloc,      (size_t k, size_t n),                                (k, n)) \
  X(void*,   __libc_realloc,     (void* block, size_t n),                             (block, n)) \
  X(void,    __libc_free,        (void* block),                                       (block)) \
  X(void*,   __libc_memalign,    (size_t alignment, size_t n),                        (alignment, n)) \
  X(void*,   __libc_valloc,      (size_t n),                                          (n)) \
  X(void*,   __libc_pvalloc,     (size_t n),                                          (n))

// Called too often for a jump through a table: their hooks are exported as they are.
//  result   name                parameters                                           arguments
#define OOMREC_HEAP_FUNCTIONS(X) \
  X(void*,   malloc,             (size_t n),                                          (n)) \
  X(void*,   calloc,             (size_t k, size_t n),                                (k, n)) \
  X(void*,   realloc,            (void* block, size_t n),                             (block, n)) \
  X(void*,   reallocarray,       (void* block, size_t k, size_t n),                   (block, k, n)) \
  X(void,    free,               (void* block),                                       (block)) \
  X(void*,   memalign,           (size_t alignment, size_t n),                        (alignment, n)) \
  X(void*,   aligned_alloc,      (size_t alignment, size_t n),                        (alignment, n)) \
  X(int,     posix_memalign,     (void** block, size_t alignment, size_t n),          (block, alignment, n)) \
  X(void*,   valloc,             (size_t n),                                          (n)) \
  X(void*,   pvalloc,            (size_t n),                                          (n))

// The program enters these through a table of pointers (entries.h).
#define OOMREC_ENTERED_FUNCTIONS(X) \
  X(void*,   mmap,               (void* at, size_t n, int protection, int flags, int fd, off_t offset), \
                                 (at, n, protection, flags, fd, offset)) \
  X(int,     munmap,             (void* at, size_t n),                                (at, n)) \
  X(void*,   mremap,             (void* at, size_t old_n, size_t n, int flags, void* to), \
                                 (at, old_n, n, flags, to)) \
  X(int,     mprotect,           (void* at, size_t n, int protection),                (at, n, protection)) \
  X(int,     brk,                (void* end),                                         (end)) \
  X(void*,   sbrk,               (intptr_t increment),                                (increment)) \
  X(void*,   shmat,              (int id, const void* at, int flags),                 (id, at, flags)) \
  X(int,     shmdt,              (const void* at),                                    (at)) \
  X(int,     mlock,              (const void* at, size_t n),                          (at, n)) \
  X(int,     mlock2,             (const void* at, size_t n, unsigned flags),          (at, n, flags)) \
  X(int,     mlockall,           (int flags),                                         (flags)) \
  X(int,     munlockall,         (),                                                  ()) \
  X(pid_t,   fork,               (),                                                  ()) \
  X(int,     daemon,             (int no_chdir, int no_close),                        (no_chdir, no_close)) \
  X(int,     execve,             (const char* path, char* const* arguments, char* const* environment), \
                                 (path, arguments, environment)) \
  X(int,     execvpe,            (const char* file, char* const* arguments, char* const* environment), \
                                 (file, arguments, environment)) \
  X(int,     fexecve,            (int fd, char* const* arguments, char* const* environment), \
                                 (fd, arguments, environment)) \
  X(int,     posix_spawn,        (pid_t* pid, const char* path, const void* actions, const void* attributes, \
                                  char* const* arguments, char* const* environment), \
                                 (pid, path, actions, attributes, arguments, environment)) \
  X(int,     posix_spawnp,       (pid_t* pid, const char* file, const void* actions, const void* attributes, \
                                  char* const* arguments, char* const* environment), \
                                 (pid, file, actions, attributes, arguments, environment)) \
  X(pid_t,   wait,               (int* status),                                       (status)) \
  X(pid_t,   waitpid,            (pid_t pid, int* status, int options),               (pid, status, options)) \
  X(int,     waitid,             (int kind, unsigned id, siginfo_t* info, int options), (kind, id, info, options)) \
  X(pid_t,   wait3,              (int* status, int options, void* usage),             (status, options, usage)) \
  X(pid_t,   wait4,              (pid_t pid, int* status, int options, void* usage),  (pid, status, options, usage)) \
  X(int,     kill,               (pid_t pid, int signal),                             (pid, signal)) \
  X(int,     prctl,              (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d), \
                                 (option, a, b, c, d)) \
  X(long,    syscall,            (long number, long a, long b, long c, long d, long e, long f), \
                                 (number, a, b, c, d, e, f)) \
  X(int,     sigaction,          (int number, const struct sigaction* action, struct sigaction* before), \
                                 (number, action, before)) \
  X(int,     __sigaction,        (int number, const struct sigaction* action, struct sigaction* before), \
                                 (number, action, before)) \
  X(int,     sigaltstack,        (const stack_t* stack, stack_t* before),             (stack, before)) \
  OOMREC_OPTIONAL_FUNCTIONS(X) \
  OOMREC_LIBC_NAMES(X) \
  OOMREC_COPYING_FUNCTIONS(X) \
  OOMREC_OLD_SIGNAL_FUNCTIONS(X) \
  OOMREC_LONG_JUMPS(X) \
  X(void,    abort,              (),                                                  ()) \
  X(void,    _exit,              (int status),                                        (status)) \
  X(void,    _Exit,              (int status),                                        (status)) \
  X(void,    quick_exit,         (int status),                                        (status))

// Like these, but their hooks call one of the others.
#define OOMREC_OTHER_ENTERED_FUNCTIONS(X) \
  X(mmap64) X(cfree) X(execv) X(execvp) X(execl) X(execlp) X(execle)

// Not hooked, only called.
#define OOMREC_CALLED_FUNCTIONS(X) \
  X(size_t,  malloc_usable_size, (void* block),                                       (block))

#define OOMREC_NEXT_FUNCTIONS(X) OOMREC_HEAP_FUNCTIONS(X) OOMREC_ENTERED_FUNCTIONS(X) OOMREC_CALLED_FUNCTIONS(X)
// clang-format on
