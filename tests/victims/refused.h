/* Sizes no machine grants: known in a bundle by being odd and unique. */
#ifndef REFUSED_H
#define REFUSED_H
#include <stddef.h>
#define TOO_MUCH ((size_t)1 << 46)
#endif
