/* A bundle at a point of the program that a test names; nothing without a recorder. */
#ifndef MARKS_H
#define MARKS_H
#include "include/oomrec.h"

static inline void mark(const char* name) { OOMREC_CALL(oomrec_dump, name); }
#endif
