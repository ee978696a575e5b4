# A library to preload that has a dlsym of its own, as others have: counts look-ups, and enters the
# next one by a jump.
        .text
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
#if defined(__aarch64__)
        adrp    x16, tail_dlsym_look_ups
        add     x16, x16, :lo12:tail_dlsym_look_ups
2:      ldxr    x17, [x16]
        add     x17, x17, #1
        stxr    w9, x17, [x16]
        cbnz    w9, 2b
        adrp    x16, tail_dlsym_next
        ldr     x17, [x16, :lo12:tail_dlsym_next]
        cbnz    x17, 1f
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        stp     x0, x1, [sp, #16]
        bl      tail_dlsym_find_next
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        adrp    x16, tail_dlsym_next
        ldr     x17, [x16, :lo12:tail_dlsym_next]
1:      br      x17
#else
        endbr64
        lock incq tail_dlsym_look_ups(%rip)
        cmpq    $0, tail_dlsym_next(%rip)
        jne     1f
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %rsi
        .cfi_adjust_cfa_offset 8
        sub     $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    tail_dlsym_find_next
        add     $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
1:      jmp     *tail_dlsym_next(%rip)
#endif
        .cfi_endproc
        .size   dlsym, . - dlsym
        .section .note.GNU-stack, "", @progbits
