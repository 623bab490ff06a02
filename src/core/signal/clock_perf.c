// SPDX-License-Identifier: MIT
// Clock engine `perf`: a software task-clock event per thread that signals the thread on overflow.
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "signal/clock_engine.h"

// The event's descriptor; -1 = none.
static int *fd_of(const gp_timer_t *timer)
{
    return (int *)timer->state;
}

// Not close(): that is a cancellation point, and a lock is held.
static void close_event(int fd)
{
    syscall(SYS_close, fd);
}

// Is the descriptor still what we opened? A host that closes every descriptor may have reused the number. Asked of the
// descriptor itself: a process that gave up its user's rights may not look into its own /proc, and there may be none.
static bool is_perf_event(int fd)
{
    uint64_t id;
    return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

static int direct_to_thread(int fd, pid_t tid, int signal_number)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
    if (fcntl(fd, F_SETOWN_EX, &owner) != 0 || fcntl(fd, F_SETSIG, signal_number) != 0 ||
        fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
        return -errno;
    return 0;
}

static int arm(gp_timer_t *timer, pid_t tid, int signal_number)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.sample_period = gp_timer_draw(timer);
    *fd_of(timer) = -1;
    attr.disabled = 1;
    // Kernel time included: without it a tick inside a system call is lost and its time goes to the next thread.
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int high = gp_descriptor_raise(fd);
    if (high < 0) { // the low ones are the host's
        close_event(fd);
        return high;
    }
    fd = high;
    int error = direct_to_thread(fd, tid, signal_number);
    if (error == 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
        error = -errno;
    if (error != 0) {
        close_event(fd);
        return error;
    }
    *fd_of(timer) = fd;
    timer->armed = true;
    return 0;
}

static void disarm(gp_timer_t *timer)
{
    if (!timer->armed)
        return;
    int fd = *fd_of(timer);
    timer->armed = false;
    *fd_of(timer) = -1; // first: the handler may be about to use it
    if (is_perf_event(fd)) {
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        close_event(fd);
    }
}

static void abandon(gp_timer_t *timer)
{
    // The event is shared with the parent: disabling it would stop the parent's.
    if (timer->armed && is_perf_event(*fd_of(timer)))
        close(*fd_of(timer));
    timer->armed = false;
    *fd_of(timer) = -1;
}

static void set_interval(gp_timer_t *timer, uint64_t ns)
{
    ioctl(*fd_of(timer), PERF_EVENT_IOC_PERIOD, &ns);
}

static bool is_alive(const gp_timer_t *timer)
{
    return is_perf_event(*fd_of(timer));
}

static bool is_mine(const gp_timer_t *timer, const siginfo_t *info)
{
    // Source: fcntl(2) F_SETSIG: si_code is a POLL_* value and si_fd the descriptor; a lost queue slot gives SI_KERNEL.
    return info->si_code == SI_KERNEL || (info->si_code > 0 && info->si_fd == *fd_of(timer));
}

const gp_clock_engine_t gp_clock_perf = {
    .name = "perf",
    .id = GP_ENGINE_PERF,
    .gap_periods = 4, // every 1.5 by the clock itself
    .arm = arm,
    .disarm = disarm,
    .abandon = abandon,
    .set_interval = set_interval,
    .is_alive = is_alive,
    .is_mine = is_mine,
};
