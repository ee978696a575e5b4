# The loader's functions, by the versions that each glibc has. Until 2.34 they were in libdl: in a program
# without it the references are null, and loader.c answers.
        .macro by_version name, version
        .weak   older_\name
        .symver older_\name, \name@\version
        .section .text.older.\name, "ax", @progbits
        .globl  \name
        .hidden \name
        .type   \name, @function
\name:  endbr64
        mov     older_\name@GOTPCREL(%rip), %rax
        test    %rax, %rax
        je      oomrec_fallback_\name
        jmp     *%rax
        .size   \name, . - \name
        .endm

        .irp    name, dladdr, dlopen, dlvsym
        by_version \name, GLIBC_2.2.5
        .endr
        by_version dladdr1, GLIBC_2.3.3

        # Never null: the library exports one itself.
        .symver older_dlsym, dlsym@GLIBC_2.2.5
        .section .text.older.dlsym, "ax", @progbits
        .globl  dlsym
        .hidden dlsym
        .type   dlsym, @function
dlsym:  endbr64
        jmp     *older_dlsym@GOTPCREL(%rip)
        .size   dlsym, . - dlsym

        # The program's dlvsym, or null.
        .section .text.older.linked_dlvsym, "ax", @progbits
        .globl  oomrec_linked_dlvsym
        .hidden oomrec_linked_dlvsym
        .type   oomrec_linked_dlvsym, @function
oomrec_linked_dlvsym:
        endbr64
        mov     older_dlvsym@GOTPCREL(%rip), %rax
        ret
        .size   oomrec_linked_dlvsym, . - oomrec_linked_dlvsym
        .section .note.GNU-stack, "", @progbits
