// Functions that only newer glibcs have, and that our code and the static archives call when they
// are compiled with its headers.
#include <stdarg.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)
#define IN_GLIBC __attribute__((visibility("default")))

// 2.38: strtol and sscanf by names that also read C23's "0b". The old functions do not.
#define CALL_OLD(type, name)                                         \
  IN_GLIBC type old_##name(const char*, char**, int) __asm__(#name); \
  type __isoc23_##name(const char* text, char** end, int base);      \
  type __isoc23_##name(const char* text, char** end, int base) {     \
    return old_##name(text, end, base);                              \
  }

CALL_OLD(long, strtol)
CALL_OLD(unsigned long, strtoul)
CALL_OLD(long long, strtoll)
CALL_OLD(unsigned long long, strtoull)

IN_GLIBC int old_vsscanf(const char*, const char*, va_list) __asm__("__isoc99_vsscanf");
int __isoc23_sscanf(const char* text, const char* format, ...);
int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int read = old_vsscanf(text, format, arguments);
  va_end(arguments);
  return read;
}

// 2.36, for libstdc++.
unsigned own_arc4random(void) __asm__("arc4random");
unsigned own_arc4random(void) {
  unsigned number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

// 2.34.
int close_range(unsigned first, unsigned last, int flags);
int close_range(unsigned first, unsigned last, int flags) {
  return (int)syscall(SYS_close_range, first, last, flags);
}

// 2.32. Not 1: nobody would set it to 0 when a thread starts.
char __libc_single_threaded = 0;

#if __GLIBC_PREREQ(2, 42)
// 2.42: another version, in bits per second. ncurses asks for it, to slow down for old terminals.
unsigned own_cfgetospeed(const struct termios* terminal) __asm__("cfgetospeed");
unsigned own_cfgetospeed(const struct termios* terminal) {
  (void)terminal;
  return 38400;
}
#endif
