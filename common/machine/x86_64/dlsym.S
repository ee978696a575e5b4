# void *dlsym(void *library, const char *name)
#
# The loader's function resolves RTLD_NEXT and RTLD_DEFAULT relative to its return address. So it is
# entered by a jump, with the caller's address. An ordinary function that calls it would break
# RTLD_NEXT in all other libraries.
#
# Exported under the C library's versions, because a library preloaded before us with its own dlsym
# looks up the next one by version; and only under those, which other C libraries ignore.
        .text
        .globl  oomrec_dlsym
        .type   oomrec_dlsym, @function
        .symver oomrec_dlsym, dlsym@GLIBC_2.2.5, remove
        .globl  oomrec_dlsym_2_34
        .type   oomrec_dlsym_2_34, @function
        .set    oomrec_dlsym_2_34, oomrec_dlsym
        .symver oomrec_dlsym_2_34, dlsym@GLIBC_2.34, remove
        .p2align 4
oomrec_dlsym:
        .cfi_startproc
        endbr64
        mov     (%rsp), %rdx                  # the caller
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        sub     $8, %rsp                      # the stack is aligned for a call
        .cfi_adjust_cfa_offset 8
        call    oomrec_dlsym_filter           # rax: the answer, rdx: whether it is one
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        test    %rdx, %rdx
        jne     1f
        jmp     *oomrec_next_dlsym(%rip)
1:      ret
        .cfi_endproc
        .size   oomrec_dlsym, . - oomrec_dlsym
        .section .note.GNU-stack, "", @progbits
