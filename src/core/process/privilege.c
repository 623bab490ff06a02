// SPDX-License-Identifier: MIT
// Calls by which the program gives up rights, or takes them, for all its threads or for one: greenprof's own step aside
// (aside.h). By functions of libc, or by the host's syscall() with the number of one.
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "greenprof/prof.h"
#include "process/aside.h"
#include "process/exec_number.h"
#include "process/host_calls.h"
#include "process/sandbox.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

// Source: unshare(2), setns(2).
enum {
    UNSHARED_ALONE = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM,
    ENTERED_ALONE = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME,
    LANDLOCK_RESTRICT_SELF = 446,
};

// --- of all threads: glibc has each of them make the call

#define PRIVILEGE(name, parameters, arguments)                                                                         \
    PROF_API int name parameters                                                                                       \
    {                                                                                                                  \
        static __typeof__(name) *_Atomic next;                                                                         \
        gp_aside_t aside;                                                                                              \
        if (next == NULL)                                                                                              \
            next = (__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name);                                             \
        gp_aside_begin(&aside, GP_ASIDE_ALL);                                                                          \
        int result = next arguments;                                                                                   \
        gp_aside_end(&aside);                                                                                          \
        return result;                                                                                                 \
    }

PRIVILEGE(setuid, (uid_t user), (user))
PRIVILEGE(setgid, (gid_t group), (group))
PRIVILEGE(seteuid, (uid_t user), (user))
PRIVILEGE(setegid, (gid_t group), (group))
PRIVILEGE(setreuid, (uid_t real, uid_t effective), (real, effective))
PRIVILEGE(setregid, (gid_t real, gid_t effective), (real, effective))
PRIVILEGE(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PRIVILEGE(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
PRIVILEGE(setgroups, (size_t count, const gid_t *groups), (count, groups))
PRIVILEGE(initgroups, (const char *user, gid_t group), (user, group))

// --- of one thread

static long privilege_aside(gp_aside_for_t what, long number, const long a[5])
{
    gp_aside_t aside;
    gp_aside_begin(&aside, what);
    long result = gp_raw_call(number, a[0], a[1], a[2], a[3], a[4]);
    gp_aside_end(&aside);
    return gp_raw_answer(result);
}

// A thread cannot begin in a process id namespace that is not its process': greenprof's own would not come back.
static long privilege_namespaces(long kinds, long alone, long number, const long a[5])
{
    if (kinds & alone)
        return privilege_aside(GP_ASIDE_ALONE, number, a);
    if (kinds <= 0 || (kinds & CLONE_NEWPID))
        return gp_raw_answer(gp_raw_call(number, a[0], a[1], a[2], a[3], a[4]));
    return privilege_aside(GP_ASIDE_FIRST, number, a);
}

static long privilege_setns(const long a[5])
{
    int saved = errno, kinds = a[1] != 0 ? (int)a[1] : ioctl((int)a[0], NS_GET_NSTYPE);
    errno = saved;
    return privilege_namespaces(kinds, ENTERED_ALONE, SYS_setns, a);
}

static bool privilege_changes_rights(long option)
{
    switch (option) {
    case PR_SET_KEEPCAPS:
    case PR_SET_SECUREBITS:
    case PR_SET_NO_NEW_PRIVS:
    case PR_CAPBSET_DROP:
    case PR_CAP_AMBIENT:
        return true;
    default:
        return false;
    }
}

static long privilege_prctl(const long a[5])
{
    if (gp_sandbox_is_entered_by_prctl(a))
        return gp_sandbox_enter(SYS_prctl, a);
    if (privilege_changes_rights(a[0]))
        return privilege_aside(GP_ASIDE_FIRST, SYS_prctl, a);
    return gp_raw_answer(gp_raw_call(SYS_prctl, a[0], a[1], a[2], a[3], a[4]));
}

// The numbers are those in host_syscall_*.S.
long gp_process_number(long number, long a, long b, long c, long d, long e)
{
    const long words[5] = {a, b, c, d, e};
    switch (number) {
    case SYS_execve:
    case SYS_execveat:
        return gp_process_exec_number(number, a, b, c, d, e);
    case SYS_rt_sigaction:
        return gp_host_kernel_action(words);
    case SYS_sigaltstack:
        return gp_host_kernel_stack(words);
    case SYS_prctl:
        return privilege_prctl(words);
    case SYS_unshare:
        return privilege_namespaces(a, UNSHARED_ALONE, number, words);
    case SYS_setns:
        return privilege_setns(words);
    case SYS_seccomp:
        return gp_sandbox_enter(number, words);
    default:
        return privilege_aside(GP_ASIDE_FIRST, number, words);
    }
}

PROF_API int unshare(int flags)
{
    return (int)gp_process_number(SYS_unshare, flags, 0, 0, 0, 0);
}

PROF_API int setns(int fd, int type)
{
    return (int)gp_process_number(SYS_setns, fd, type, 0, 0, 0);
}

// libcap's, which has no header without it. Source: capset(2).
PROF_API int capset(void *header, const void *data);

int capset(void *header, const void *data)
{
    return (int)gp_process_number(SYS_capset, (long)header, (long)data, 0, 0, 0);
}

PROF_API int prctl(int option, ...)
{
    long words[5] = {option};
    va_list list;
    va_start(list, option);
    for (int i = 1; i < 5; i++)
        words[i] = va_arg(list, long); // those that are not given are not looked at
    va_end(list);
    return (int)privilege_prctl(words);
}
