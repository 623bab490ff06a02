// SPDX-License-Identifier: MIT
#include "thread_stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model/wait_calls.h"

enum {
    STEP_NS = 200000, // between two looks
    EVENT_STOP = 128, // PTRACE_EVENT_STOP, which glibc has not
};

static unsigned signal_holders;
static sigset_t mask_before;

void gp_thread_stop_hold_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    if (signal_holders++ == 0)
        sigprocmask(SIG_BLOCK, &all, &mask_before);
}

void gp_thread_stop_let_signals_go(void)
{
    if (--signal_holders == 0)
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

char gp_thread_stop_state(pid_t pid, pid_t tid, char *name)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *begin = strchr(text, '('), *end = strrchr(text, ')');
    if (begin == NULL || end == NULL || end[1] != ' ')
        return '?';
    if (name != NULL)
        snprintf(name, GP_THREAD_NAME_SIZE, "%.*s", (int)(end - begin - 1), begin + 1);
    return end[2];
}

int gp_thread_stop_each(pid_t pid, int (*visit)(pid_t tid, void *argument), void *argument)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    int error = tasks != NULL ? -EAGAIN : -ESRCH;
    for (struct dirent *entry; tasks != NULL && error == -EAGAIN && (entry = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0)
            error = visit(tid, argument);
    }
    if (tasks != NULL)
        closedir(tasks);
    return error;
}

static uint64_t thread_stop_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int gp_thread_stop_wait(pid_t tid, uint64_t limit_ns, int *status)
{
    uint64_t end = thread_stop_now_ns() + limit_ns;
    for (;;) {
        pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got == tid)
            return WIFSTOPPED(*status) ? 0 : -ESRCH;
        if (got < 0 && errno != EINTR)
            return -ESRCH;
        if (limit_ns == 0 || thread_stop_now_ns() > end)
            return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    }
}

bool gp_thread_stop_is_asked(int status)
{
    return status >> 16 == EVENT_STOP;
}

static bool drops_samples;

void gp_thread_stop_drop_samples(void)
{
    drops_samples = true;
}

// Is a signal a sample, of a perf event or of a timer? Source: sigaction(2), src/core/signal/clock_*.c.
static bool thread_stop_is_sample(pid_t tid, int number)
{
    siginfo_t info;
    char path[64], link[64] = "";
    bool may_be = number == SIGPROF || number == SIGSTKFLT || (number >= SIGRTMIN && number <= SIGRTMAX);
    if (!drops_samples || !may_be || ptrace(PTRACE_GETSIGINFO, tid, 0, &info) != 0)
        return false;
    if (info.si_code == SI_TIMER || info.si_code == SI_KERNEL) // the latter where the kernel had no room for more
        return number == SIGPROF || number == SIGSTKFLT;
    if (info.si_code < POLL_IN || info.si_code > POLL_HUP)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, info.si_fd);
    ssize_t length = readlink(path, link, sizeof(link) - 1);
    return length < 0 || strstr(link, "[perf_event]") != NULL; // may be closed by now
}

int gp_thread_stop_wait_asked(pid_t tid, uint64_t limit_ns)
{
    int status, error;
    while ((error = gp_thread_stop_wait(tid, limit_ns, &status)) == 0 && !gp_thread_stop_is_asked(status))
        ptrace(PTRACE_CONT, tid, 0,
               status >> 16 == 0 && !thread_stop_is_sample(tid, WSTOPSIG(status)) ? WSTOPSIG(status) : 0);
    return error;
}

long gp_thread_stop_call(pid_t tid)
{
    struct user_regs_struct registers;
    return ptrace(PTRACE_GETREGS, tid, 0, &registers) == 0 ? (long)registers.orig_rax : -1;
}

bool gp_thread_stop_restart_call(struct user_regs_struct *registers)
{
    enum { INSTRUCTION_BYTES = 2 };
    if ((long)registers->rax != -EINTR || !gp_is_wait_call((long)registers->orig_rax))
        return false;
    registers->rax = registers->orig_rax;
    registers->rip -= INSTRUCTION_BYTES;
    registers->orig_rax = (unsigned long long)-1;
    return true;
}
