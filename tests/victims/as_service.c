/* Starts a program as systemd starts a service with SystemCallFilter=@system-service: under a
 * filter that kills it for a system call that is in none of these groups (systemd 257). Arguments:
 * the program, and its own. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL(name)                                       \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* clang-format off */
static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL(acct), KILL(adjtimex), KILL(bpf), KILL(chroot), KILL(clock_adjtime), KILL(clock_settime),
    KILL(delete_module), KILL(fanotify_init), KILL(fanotify_mark), KILL(finit_module), KILL(init_module),
    KILL(kexec_load), KILL(mincore), KILL(mount), KILL(open_by_handle_at), KILL(perf_event_open),
    KILL(pivot_root), KILL(ptrace), KILL(quotactl), KILL(reboot), KILL(setdomainname), KILL(sethostname),
    KILL(settimeofday), KILL(swapoff), KILL(swapon), KILL(syslog), KILL(umount2), KILL(vhangup),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
/* clang-format on */

int main(int count, char** arguments) {
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (count < 2) return 2;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 77;
  execv(arguments[1], arguments + 1);
  return 127;
}
