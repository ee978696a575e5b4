# Functions of which newer glibcs have a version of their own, by the versions that older ones have, too.
# In assembly, because link-time optimization loses a .symver of C.
#include "common/machine/assembly.h"
        .macro by_version name, version
        .section .text.older.\name, "ax", @progbits
        .globl  \name
        .hidden \name
        .type   \name, @function
        .symver older_\name, \name@\version
\name:  landing
        jump_to older_\name
        .size   \name, . - \name
        .endm

        # 2.29 and 2.38: without the old ways to report errors.
        .irp    name, exp, exp2, fmod, log, log2, pow
        by_version \name, OLDEST_GLIBC
        .endr

        # 2.34: the same function in a newer glibc. An older one calls what it gets as its fourth argument
        # to run the program's constructors, and its fifth at the end.
        .section .text.older.start, "ax", @progbits
        .globl  __libc_start_main
        .hidden __libc_start_main
        .type   __libc_start_main, @function
        .symver older_start_main, __libc_start_main@OLDEST_GLIBC
__libc_start_main:
        landing
        pass_fourth_and_null oomrec_run_constructors
        jump_to older_start_main
        .size   __libc_start_main, . - __libc_start_main
        .section .note.GNU-stack, "", @progbits
