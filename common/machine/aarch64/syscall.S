# long syscall(long number, ...): all but a few numbers continue by a jump with unchanged arguments.
# No frame of ours is in between, because a number may fork or return twice.
#include "common/machine/assembly.h"
        .text
        .globl  hook_syscall
        .hidden hook_syscall
        .type   hook_syscall, @function
        .p2align 4
hook_syscall:
        .cfi_startproc
        landing
        cmp     x0, 167                       // prctl
        b.eq    1f
        cmp     x0, 94                        // exit_group
        b.eq    1f
        cmp     x0, 277                       // seccomp
        b.eq    1f
        jump_through oomrec_next_syscall
1:      b       oomrec_watched_syscall
        .cfi_endproc
        .size   hook_syscall, . - hook_syscall
        .section .note.GNU-stack, "", @progbits
