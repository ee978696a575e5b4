# long syscall(long number, ...): all but a few numbers continue by a jump with unchanged arguments.
# No frame of ours is in between, because a number may fork or return twice.
        .text
        .globl  hook_syscall
        .hidden hook_syscall
        .type   hook_syscall, @function
        .p2align 4
hook_syscall:
        .cfi_startproc
        endbr64
        cmp     $157, %rdi                    # prctl
        je      1f
        cmp     $231, %rdi                    # exit_group
        je      1f
        cmp     $317, %rdi                    # seccomp
        je      1f
        jmp     *oomrec_next_syscall(%rip)
1:      jmp     oomrec_watched_syscall
        .cfi_endproc
        .size   hook_syscall, . - hook_syscall
        .section .note.GNU-stack, "", @progbits
