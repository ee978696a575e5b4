# The loader's functions, by the versions that each glibc has. Until 2.34 they were in libdl: in a program
# without it the references are null, and loader.c answers.
#include "common/machine/assembly.h"
        .macro by_version name, version
        .weak   older_\name
        .symver older_\name, \name@\version
        .section .text.older.\name, "ax", @progbits
        .globl  \name
        .hidden \name
        .type   \name, @function
\name:  landing
        jump_to_either older_\name, oomrec_fallback_\name
        .size   \name, . - \name
        .endm

        .irp    name, dladdr, dlvsym
        by_version \name, OLDEST_GLIBC
        .endr
        by_version dladdr1, OLDEST_DLADDR1

        # Never null: the library exports one itself.
        .symver older_dlsym, dlsym@OLDEST_GLIBC
        .section .text.older.dlsym, "ax", @progbits
        .globl  dlsym
        .hidden dlsym
        .type   dlsym, @function
dlsym:  landing
        jump_to older_dlsym
        .size   dlsym, . - dlsym

        # The program's dlvsym, or null.
        .section .text.older.linked_dlvsym, "ax", @progbits
        .globl  oomrec_linked_dlvsym
        .hidden oomrec_linked_dlvsym
        .type   oomrec_linked_dlvsym, @function
oomrec_linked_dlvsym:
        landing
        return_address_of older_dlvsym
        .size   oomrec_linked_dlvsym, . - oomrec_linked_dlvsym
        .section .note.GNU-stack, "", @progbits
