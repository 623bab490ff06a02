// SPDX-License-Identifier: MIT
#include "collect/perf_probe.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "signal/mask.h"

enum { STATUS_BYTES = 8192, STACK_BYTES = 16384, SURVIVED = 1 };

// Source: proc_pid_status(5): "Seccomp:\t2" is a process with a filter.
bool gp_perf_has_filter(void)
{
    static char text[STATUS_BYTES];
    int fd = gp_descriptor_open(AT_FDCWD, "/proc/self/status", O_RDONLY, 0);
    if (fd < 0)
        return false;
    ssize_t length = syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, "\nSeccomp:\t2") != NULL;
}

static int perf_probe_try(void *unused)
{
    (void)unused;
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK, .disabled = 1};
    syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    syscall(SYS_exit, SURVIVED);
    return 0;
}

// A child without an exit signal, of which the program hears nothing; all signals are blocked in it.
static bool perf_probe_is_survived(void)
{
    static uint64_t stack[STACK_BYTES / sizeof(uint64_t)];
    sigset_t all, old;
    int status = 0;
    sigfillset(&all);
    gp_mask_change(SIG_SETMASK, &all, &old);
    pid_t pid = clone(perf_probe_try, (unsigned char *)stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);
    bool is_known = pid > 0 && syscall(SYS_wait4, pid, &status, __WCLONE, NULL) == pid;
    gp_mask_change(SIG_SETMASK, &old, NULL);
    return is_known && WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED;
}

static _Atomic enum { NOT_KNOWN, FATAL, NOT_FATAL } answer;

bool gp_perf_is_fatal(void)
{
    if (answer == NOT_KNOWN)
        answer = gp_perf_has_filter() && !perf_probe_is_survived() ? FATAL : NOT_FATAL;
    return answer == FATAL;
}

void gp_perf_forbid(void)
{
    answer = FATAL;
}
