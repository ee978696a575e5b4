// glibc 2.38 and newer compile calls of strtol into calls of __isoc23_strtol, which an older glibc
// lacks: here, and in the static archives. With these definitions the command runs on both. They
// only read no "0b" prefix, which C23 adds for bases 0 and 2.
#pragma GCC visibility push(hidden)
#define CALL_OLD(type, name)                                     \
  type old_##name(const char*, char**, int) __asm__(#name);      \
  type __isoc23_##name(const char* text, char** end, int base);  \
  type __isoc23_##name(const char* text, char** end, int base) { \
    return old_##name(text, end, base);                          \
  }

CALL_OLD(long, strtol)
CALL_OLD(unsigned long, strtoul)
CALL_OLD(long long, strtoll)
CALL_OLD(unsigned long long, strtoull)
