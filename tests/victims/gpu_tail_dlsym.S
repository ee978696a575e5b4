# A library to preload that has a dlsym of its own, as others have: counts look-ups, and enters the
# next one by a jump.
        .text
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
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
        .cfi_endproc
        .size   dlsym, . - dlsym
        .section .note.GNU-stack, "", @progbits
