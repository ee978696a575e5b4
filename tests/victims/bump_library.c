/* A library that a plugin links for its allocator.
 */
#include "bump_allocator.h"
