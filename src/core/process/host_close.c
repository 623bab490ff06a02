// SPDX-License-Identifier: MIT
// The program closes descriptors unknown to it, as daemons do with all numbers, and shells once more with closed ones:
// greenprof's are left open. The answer is the same as without greenprof: nothing is open by this number. Where one of
// greenprof's has a low number for a moment, it is waited for (base/descriptors.h).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/raw_call.h"
#include "control/control.h"
#include "coro/process_id.h"
#include "greenprof/prof.h"
#include "signal/clock_engine.h"

typedef int close_t(int);
typedef void closefrom_t(int);

extern int __close(int fd); // glibc's own name

static bool host_close_spares(int fd)
{
    if (!gp_descriptor_was_raised(fd) || !gp_process_is_mine())
        return false;
    int saved = errno;
    bool is_own = gp_clock_perf_owns(fd) || gp_control_owns(fd);
    errno = saved;
    return is_own;
}

static void host_close_lets_low_ones_by(void)
{
    for (int i = 0;; i++) {
        atomic_fetch_add_explicit(&gp_descriptors_closing, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&gp_descriptors_low, memory_order_seq_cst) == 0 || !gp_process_is_mine())
            return;
        if (i == GP_DESCRIPTORS_PAUSES)
            break;
        gp_descriptor_count_down(&gp_descriptors_closing);
        gp_descriptor_pause();
    }
    atomic_store_explicit(&gp_descriptors_low, 0, memory_order_release);
}

static int host_close_ends(int result)
{
    gp_descriptor_count_down(&gp_descriptors_closing);
    return result;
}

PROF_API int dup2(int from, int to)
{
#ifdef SYS_dup2
    host_close_lets_low_ones_by();
    return host_close_ends((int)gp_raw_answer(gp_raw_call(SYS_dup2, from, to, 0, 0, 0)));
#else
    if (from == to)
        return fcntl(from, F_GETFD) < 0 ? -1 : to;
    host_close_lets_low_ones_by();
    return host_close_ends((int)gp_raw_answer(gp_raw_call(SYS_dup3, from, to, 0, 0, 0)));
#endif
}

PROF_API int dup3(int from, int to, int flags)
{
    host_close_lets_low_ones_by();
    return host_close_ends((int)gp_raw_answer(gp_raw_call(SYS_dup3, from, to, flags, 0, 0)));
}

PROF_API int close(int fd)
{
    static close_t *_Atomic next;
    if (host_close_spares(fd)) {
        errno = EBADF;
        return -1;
    }
    close_t *call = atomic_load_explicit(&next, memory_order_relaxed);
    if (call == NULL) {
        call = (close_t *)(uintptr_t)dlsym(RTLD_NEXT, "close");
        call = call != NULL ? call : __close;
        atomic_store_explicit(&next, call, memory_order_relaxed);
    }
    host_close_lets_low_ones_by();
    return host_close_ends(call(fd));
}

// The first descriptor from `fd` on that is spared; UINT_MAX = none.
static unsigned host_close_next_spared(unsigned fd)
{
    for (; fd < GP_DESCRIPTORS_KNOWN; fd++)
        if (fd % 64 == 0 && atomic_load_explicit(&gp_descriptors_raised[fd / 64], memory_order_relaxed) == 0)
            fd += 63;
        else if (host_close_spares((int)fd))
            return fd;
    return UINT_MAX;
}

// All but those that are spared. Returns 0, or a negative errno value.
static long host_close_all(unsigned first, unsigned last)
{
    unsigned spared;
    while ((spared = host_close_next_spared(first)) <= last && spared != UINT_MAX) {
        long result = spared != first ? gp_raw_call(SYS_close_range, first, spared - 1, 0, 0, 0) : 0;
        if (result != 0 || spared == last)
            return result;
        first = spared + 1;
    }
    return gp_raw_call(SYS_close_range, first, last, 0, 0, 0);
}

PROF_API int close_range(unsigned first, unsigned last, int flags)
{
    if (flags != 0 || first > last) // of a table of its own, or for an exec
        return (int)gp_raw_answer(gp_raw_call(SYS_close_range, first, last, flags, 0, 0));
    host_close_lets_low_ones_by();
    return host_close_ends((int)gp_raw_answer(host_close_all(first, last)));
}

PROF_API void closefrom(int first)
{
    int saved = errno;
    host_close_lets_low_ones_by();
    long result = host_close_all(first > 0 ? (unsigned)first : 0, UINT_MAX);
    host_close_ends(0);
    if (result < 0) { // before Linux 5.9
        closefrom_t *next = (closefrom_t *)(uintptr_t)dlsym(RTLD_NEXT, "closefrom");
        if (next != NULL)
            next(first);
    }
    errno = saved;
}
