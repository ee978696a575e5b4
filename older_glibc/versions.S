# Functions of which newer glibcs have a version of their own, by the versions that older ones have, too.
# In assembly, because link-time optimization loses a .symver of C.
        .macro by_version name, version
        .section .text.older.\name, "ax", @progbits
        .globl  \name
        .hidden \name
        .type   \name, @function
        .symver older_\name, \name@\version
\name:  endbr64
        jmp     *older_\name@GOTPCREL(%rip)
        .size   \name, . - \name
        .endm

        # 2.29 and 2.38: without the old ways to report errors.
        .irp    name, exp, exp2, fmod, log, log2, pow
        by_version \name, GLIBC_2.2.5
        .endr

        # 2.34: the same function in a newer glibc. An older one calls what it gets as its fourth argument
        # to run the program's constructors, and its fifth at the end.
        .section .text.older.start, "ax", @progbits
        .globl  __libc_start_main
        .hidden __libc_start_main
        .type   __libc_start_main, @function
        .symver older_start_main, __libc_start_main@GLIBC_2.2.5
__libc_start_main:
        endbr64
        lea     oomrec_run_constructors(%rip), %rcx
        xor     %r8d, %r8d
        jmp     *older_start_main@GOTPCREL(%rip)
        .size   __libc_start_main, . - __libc_start_main
        .section .note.GNU-stack, "", @progbits
