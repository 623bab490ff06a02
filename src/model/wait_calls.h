// SPDX-License-Identifier: MIT
// Which system calls are waits, for all that interrupts them: samples (core/signal/restart.c) and attaching
// (tools/greenprof/attach/thread_stop.c).
#pragma once

#include <stdbool.h>
#include <sys/syscall.h>

// System calls that end with EINTR in spite of SA_RESTART, with nothing done. Source: signal(7).
static inline bool gp_is_wait_call(long number)
{
    switch (number) {
#ifdef SYS_poll // not among the numbers that newer architectures have in common
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_pause:
#endif
    case SYS_read: // of a socket with a timeout, as those that follow
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case 327: // preadv2
    case 328: // pwritev2
    case SYS_sendfile:
    case SYS_splice:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case 441: // epoll_pwait2
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case 449: // futex_waitv
    case 455: // futex_wait
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
        return true;
    default:
        return false;
    }
}
