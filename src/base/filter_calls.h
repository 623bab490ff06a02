// SPDX-License-Identifier: MIT
// System calls of a profiled process on greenprof's account: from its core and the C library's threads; where attached
// to, also from the loader, and from the way by which the core gets there.
//
// A row: need, name, the six arguments as far as a filter (seccomp) may look at them. The arguments make
// the call do nothing, as far as possible: pointers lead to no memory.
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arch.h"

enum gp_seccomp_need {
    GP_CALL_VITAL,    // a process that is profiled cannot go on without it
    GP_CALL_ALLOWED,  // attaching needs it; may fail afterwards
    GP_CALL_LOADED,   // attaching needs it, and nothing else does
    GP_CALL_ASKED,    // the core finds out itself what it leads to, before it is made
    GP_CALL_SPARED,   // may fail, but nothing else may come of it
    GP_CALL_FALLBACK, // is allowed, or fails with ENOSYS: another one is called then
    GP_CALL_CARRIED,  // nothing is loaded without it where the core is carried (carried.h); else as GP_CALL_SPARED
};

// No descriptor has that number.
enum { GP_CALL_FD = INT_MAX, GP_CALL_POINTER = 0x10000, GP_CALL_BYTES = 4096 };

// clang-format off
#define GP_FILTER_CALLS(CALL) \
    GP_ARCH_FILTER_CALLS(CALL) \
    CALL(ALLOWED, openat, (uint64_t)AT_FDCWD, GP_CALL_POINTER, O_RDONLY | O_CLOEXEC, 0, 0, 0) \
    CALL(ALLOWED, openat, (uint64_t)AT_FDCWD, GP_CALL_POINTER, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0) \
    CALL(ALLOWED, read, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0) \
    CALL(ALLOWED, write, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0) \
    CALL(ALLOWED, writev, GP_CALL_FD, GP_CALL_POINTER, 1, 0, 0, 0) \
    CALL(VITAL, close, GP_CALL_FD, 0, 0, 0, 0, 0) \
    CALL(ALLOWED, newfstatat, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_POINTER, AT_EMPTY_PATH, 0, 0) \
    CALL(VITAL, mmap, 0, GP_CALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0) \
    CALL(LOADED, mmap, GP_CALL_POINTER, GP_CALL_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, \
         GP_CALL_FD, GP_CALL_BYTES) \
    CALL(ALLOWED, mmap, 0, GP_CALL_BYTES, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE, GP_CALL_FD, 0) \
    CALL(ALLOWED, mprotect, GP_CALL_POINTER, GP_CALL_BYTES, PROT_READ, 0, 0, 0) \
    CALL(VITAL, mprotect, GP_CALL_POINTER, GP_CALL_BYTES, PROT_READ | PROT_WRITE, 0, 0, 0) \
    CALL(VITAL, munmap, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0, 0) \
    CALL(VITAL, clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
         CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID, GP_CALL_POINTER, GP_CALL_POINTER, GP_CALL_POINTER, \
         GP_CALL_POINTER, 0) \
    CALL(SPARED, clone, CLONE_VM | CLONE_VFORK, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(FALLBACK, clone3, GP_CALL_POINTER, 88, 0, 0, 0, 0) \
    CALL(VITAL, exit, 0, 0, 0, 0, 0, 0) \
    CALL(VITAL, futex, GP_CALL_POINTER, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0) \
    CALL(ALLOWED, rt_sigaction, SIGPROF, GP_CALL_POINTER, GP_CALL_POINTER, 8, 0, 0) \
    CALL(ALLOWED, rt_sigprocmask, SIG_SETMASK, GP_CALL_POINTER, GP_CALL_POINTER, 8, 0, 0) \
    CALL(VITAL, rt_sigreturn, 0, 0, 0, 0, 0, 0) \
    CALL(ALLOWED, socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0) \
    CALL(ALLOWED, bind, GP_CALL_FD, GP_CALL_POINTER, sizeof(struct sockaddr_un), 0, 0, 0) \
    CALL(ALLOWED, listen, GP_CALL_FD, 32, 0, 0, 0, 0) \
    CALL(ALLOWED, accept4, GP_CALL_FD, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0) \
    CALL(ALLOWED, recvmsg, GP_CALL_FD, GP_CALL_POINTER, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC, 0, 0, 0) \
    CALL(ALLOWED, sendmsg, GP_CALL_FD, GP_CALL_POINTER, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0) \
    CALL(ALLOWED, getsockopt, GP_CALL_FD, SOL_SOCKET, SO_PEERCRED, GP_CALL_POINTER, GP_CALL_POINTER, 0) \
    CALL(VITAL, gettid, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, brk, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, capget, GP_CALL_POINTER, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(VITAL, clock_gettime, CLOCK_MONOTONIC, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(VITAL, clock_gettime, CLOCK_THREAD_CPUTIME_ID, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, clock_nanosleep, CLOCK_MONOTONIC, 0, GP_CALL_POINTER, 0, 0, 0) \
    CALL(ALLOWED, fchmodat, GP_CALL_FD, GP_CALL_POINTER, 0600, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_DUPFD_CLOEXEC, GP_CALL_BYTES, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_GETFD, 0, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_SETFD, FD_CLOEXEC, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_GETFL, 0, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_SETFL, O_APPEND, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_SETFL, O_NONBLOCK | O_ASYNC, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_SETOWN_EX, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_SETSIG, SIGPROF, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_GETOWN_EX, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_GETSIG, 0, 0, 0, 0) \
    CALL(SPARED, flock, GP_CALL_FD, LOCK_EX | LOCK_NB, 0, 0, 0, 0) \
    CALL(SPARED, fstat, GP_CALL_FD, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, fsync, GP_CALL_FD, 0, 0, 0, 0, 0) \
    CALL(SPARED, ftruncate, GP_CALL_FD, 0, 0, 0, 0, 0) \
    CALL(VITAL, futex, GP_CALL_POINTER, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0) \
    CALL(SPARED, getsockopt, GP_CALL_FD, SOL_SOCKET, SO_TYPE, GP_CALL_POINTER, GP_CALL_POINTER, 0) \
    CALL(SPARED, ioctl, GP_CALL_FD, TIOCGWINSZ, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, prlimit64, 0, RLIMIT_NOFILE, 0, GP_CALL_POINTER, 0, 0) \
    CALL(SPARED, prlimit64, 0, RLIMIT_FSIZE, 0, GP_CALL_POINTER, 0, 0) \
    CALL(SPARED, getdents64, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0) \
    CALL(ALLOWED, geteuid, 0, 0, 0, 0, 0, 0) \
    CALL(VITAL, getpid, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, getppid, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, getrandom, GP_CALL_POINTER, 8, GRND_NONBLOCK, 0, 0, 0) \
    CALL(SPARED, getrusage, RUSAGE_SELF, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, ioctl, GP_CALL_FD, PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0) \
    CALL(SPARED, ioctl, GP_CALL_FD, PERF_EVENT_IOC_DISABLE, 0, 0, 0, 0) \
    CALL(SPARED, ioctl, GP_CALL_FD, PERF_EVENT_IOC_PERIOD, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, ioctl, GP_CALL_FD, PERF_EVENT_IOC_ID, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, lseek, GP_CALL_FD, 0, SEEK_SET, 0, 0, 0) \
    CALL(SPARED, madvise, GP_CALL_POINTER, GP_CALL_BYTES, MADV_DONTNEED, 0, 0, 0) \
    CALL(SPARED, membarrier, MEMBARRIER_CMD_QUERY, 0, 0, 0, 0, 0) \
    CALL(SPARED, membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0) \
    CALL(CARRIED, memfd_create, GP_CALL_POINTER, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0) \
    CALL(SPARED, fcntl, GP_CALL_FD, F_ADD_SEALS, F_SEAL_SEAL, 0, 0, 0) \
    CALL(ALLOWED, mkdirat, GP_CALL_FD, GP_CALL_POINTER, 0700, 0, 0, 0) \
    CALL(SPARED, mmap, 0, GP_CALL_BYTES, PROT_READ, MAP_PRIVATE, GP_CALL_FD, 0) \
    CALL(SPARED, mmap, 0, GP_CALL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, GP_CALL_FD, 0) \
    CALL(SPARED, mmap, 0, GP_CALL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, (uint64_t)-1, 0) \
    CALL(SPARED, nanosleep, GP_CALL_POINTER, 0, 0, 0, 0, 0) \
    CALL(ASKED, perf_event_open, GP_CALL_POINTER, 0, (uint64_t)-1, (uint64_t)-1, PERF_FLAG_FD_CLOEXEC, 0) \
    CALL(SPARED, pipe2, GP_CALL_POINTER, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0) \
    CALL(SPARED, prctl, PR_SET_NAME, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0, 0) \
    CALL(SPARED, pread64, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0) \
    CALL(SPARED, prlimit64, 0, RLIMIT_STACK, 0, GP_CALL_POINTER, 0, 0) \
    CALL(SPARED, process_vm_readv, 0, GP_CALL_POINTER, 1, GP_CALL_POINTER, 1, 0) \
    CALL(SPARED, pwrite64, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0) \
    CALL(ALLOWED, renameat, GP_CALL_FD, GP_CALL_POINTER, GP_CALL_FD, GP_CALL_POINTER, 0, 0) \
    CALL(SPARED, restart_syscall, 0, 0, 0, 0, 0, 0) \
    CALL(ALLOWED, rseq, GP_CALL_POINTER, 32, 0, 0, 0, 0) \
    CALL(SPARED, rt_sigpending, GP_CALL_POINTER, 8, 0, 0, 0, 0) \
    CALL(SPARED, rt_tgsigqueueinfo, 0, 0, SIGPROF, GP_CALL_POINTER, 0, 0) \
    CALL(SPARED, rt_sigtimedwait, GP_CALL_POINTER, 0, 0, 8, 0, 0) \
    CALL(SPARED, sched_getaffinity, 0, 8, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, sched_yield, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, sched_getscheduler, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, getpriority, PRIO_PROCESS, 0, 0, 0, 0, 0) \
    CALL(SPARED, set_robust_list, GP_CALL_POINTER, 24, 0, 0, 0, 0) \
    CALL(SPARED, sigaltstack, GP_CALL_POINTER, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, statfs, GP_CALL_POINTER, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, sysinfo, GP_CALL_POINTER, 0, 0, 0, 0, 0) \
    CALL(SPARED, tgkill, 0, 0, SIGPROF, 0, 0, 0) \
    CALL(SPARED, timer_create, CLOCK_MONOTONIC, GP_CALL_POINTER, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, timer_delete, 0, 0, 0, 0, 0, 0) \
    CALL(SPARED, timer_settime, 0, 0, GP_CALL_POINTER, 0, 0, 0) \
    CALL(SPARED, uname, GP_CALL_POINTER, 0, 0, 0, 0, 0) \
    CALL(SPARED, unlinkat, GP_CALL_FD, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, wait4, 0x7fffffff, 0, __WCLONE, 0, 0, 0)
// clang-format on

typedef struct gp_filter_call {
    enum gp_seccomp_need need;
    long number;
    const char *name;
    uint64_t arguments[6];
} gp_seccomp_call_t;

// The rows, GP_FILTER_CALL_ROWS of them.
extern const gp_seccomp_call_t gp_seccomp_calls[];

#define GP_FILTER_CALL_ONE(need, name, ...) +1
enum { GP_FILTER_CALL_ROWS = GP_FILTER_CALLS(GP_FILTER_CALL_ONE) };
#undef GP_FILTER_CALL_ONE
