// Functions of files that older glibcs do not export. On this machine the kernel fills in the C
// library's struct stat.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

// 2.33: until then <sys/stat.h> made them of __xstat and its kin. By these names: the header
// declares some of them with arguments that are never null.
#define DEFINE(name, parameters, arguments) \
  int own_##name parameters __asm__(#name); \
  __attribute__((used)) int own_##name parameters { return (int)syscall arguments; }
#define DEFINE_BOTH(name, parameters, arguments) \
  DEFINE(name, parameters, arguments)            \
  DEFINE(name##64, parameters, arguments)

DEFINE_BOTH(fstatat, (int directory, const char* path, struct stat* out, int flags),
            (SYS_newfstatat, directory, path, out, flags))
DEFINE_BOTH(fstat, (int file, struct stat* out), (SYS_fstat, file, out))
DEFINE_BOTH(stat, (const char* path, struct stat* out), (SYS_newfstatat, AT_FDCWD, path, out, 0))
DEFINE_BOTH(lstat, (const char* path, struct stat* out),
            (SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW))
