/* Requests a bundle at a named point of the program; a no-op without a recorder. */
#ifndef MARKS_H
#define MARKS_H
#include "include/oomrec.h"

static inline void mark(const char* name) { OOMREC_CALL(oomrec_dump, name); }
#endif
