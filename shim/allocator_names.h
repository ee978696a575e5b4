// Further names by which a program may call its allocator: mimalloc's mi_…, tcmalloc's tc_…,
// jemalloc's xallocx.
//
// These are not exported: a program that asks whether there is such a function must not find ours.
// Where the program's allocator has one, the words through which the loaded modules call it lead to
// a hook instead (shim/interpose/redirections.h). A name for what another function does, too, leads
// to that one's hook and counts as it. Modules that are loaded later, and pointers that a program
// looks up by dlsym, are left alone; so are the allocator's own calls.
#pragma once

namespace oomrec::shim {

// Redirects the modules that are loaded now, unless the allocator is the C library's, which has no
// such names. For the constructor, after start_heap().
void redirect_allocator_names() noexcept;

// In a program that was attached to: adds them to the other redirections.
void add_allocator_names() noexcept;

}  // namespace oomrec::shim
