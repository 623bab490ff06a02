// SPDX-License-Identifier: MIT
// Functions of glibc's that musl lacks, for the core. Where one may be called in a signal handler it is as safe as
// glibc's.
#include "musl/glibc_names.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern struct r_debug *_dl_debug_addr __attribute__((weak)); // musl's loader has it

typedef int sigaction_t(int, const struct sigaction *, struct sigaction *);

int __sigaction(int number, const struct sigaction *action, struct sigaction *old);
int __close(int fd);

struct r_debug *gp_glibc_names_debug(void)
{
    static struct r_debug none;
    return &_dl_debug_addr != NULL ? _dl_debug_addr : &none;
}

const char *strerrordesc_np(int error)
{
    return strerror(error); // of the C locale unless the program has set another
}

const char *sigabbrev_np(int number)
{
    static const char names[][8] = {"",       "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
                                    "FPE",    "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
                                    "STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
                                    "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};
    return number > 0 && number < (int)(sizeof(names) / sizeof(names[0])) ? names[number] : NULL;
}

int pthread_mutex_clocklock(pthread_mutex_t *lock, clockid_t clock, const struct timespec *until)
{
    enum { PAUSE_NS = 20000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct timespec now;
    while (pthread_mutex_trylock(lock) != 0) {
        clock_gettime(clock, &now);
        if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
            return ETIMEDOUT;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return 0;
}

// musl's own, which keeps a list of what is handled; ours is found before it by the loader.
int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    static sigaction_t *_Atomic next;
    if (next == NULL)
        next = (sigaction_t *)(uintptr_t)dlsym(RTLD_NEXT, "sigaction");
    return next(number, action, old);
}

int statx(int at, const char *path, int flags, unsigned mask, struct statx *status)
{
    return (int)syscall(SYS_statx, at, path, flags, mask, status);
}

int __close(int fd)
{
    return (int)syscall(SYS_close, fd);
}
