/* Sizes that no machine grants. Odd and unique, to recognize them in a bundle. */
#ifndef IMPOSSIBLE_SIZES_H
#define IMPOSSIBLE_SIZES_H
#include <stddef.h>
#define TOO_MUCH ((size_t)1 << 46)
#endif
