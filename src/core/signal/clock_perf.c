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

enum { QUEUED_FIRST = 32 }; // the first real-time signal, as the kernel counts them

typedef struct event { // the engine's state of a timer
    int fd;            // -1 = none
    int signal_number;
    pid_t tid;
    uint64_t id; // the kernel's, of this event alone
} event_t;
_Static_assert(sizeof(event_t) <= sizeof(((gp_timer_t *)0)->state), "an engine's state fits into a timer");

static event_t *clock_perf_event_of(const gp_timer_t *timer)
{
    return (event_t *)timer->state;
}

// Not close(): that is a cancellation point, and a lock is held.
static int clock_perf_close_event(int fd)
{
    return (int)syscall(SYS_close, fd);
}

// Is the descriptor still what we opened? A host that closes every descriptor may have reused the number. Asked of the
// descriptor itself: a process that gave up its user's rights may not look into its own /proc, and there may be none. A
// sandbox may refuse to answer, with any errno value or as if it had: then another call asks, and where this is
// refused, too, a high number is taken for ours.
static bool clock_perf_is_there(const event_t *event)
{
    struct f_owner_ex owner;
    uint64_t id = 0;
    if (ioctl(event->fd, PERF_EVENT_IOC_ID, &id) == 0 && id != 0)
        return id == event->id;
    if (fcntl(event->fd, F_GETOWN_EX, &owner) != 0)
        return errno != EBADF;
    return owner.type == F_OWNER_TID && (owner.pid == event->tid || owner.pid == 0) && // 0: of a thread that is gone
           fcntl(event->fd, F_GETSIG) == event->signal_number;
}

bool gp_clock_perf_owns(int fd)
{
    struct f_owner_ex owner;
    uint64_t id = 0;
    return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 && id != 0 && fcntl(fd, F_GETOWN_EX, &owner) == 0 &&
           owner.type == F_OWNER_TID && fcntl(fd, F_GETSIG) != 0;
}

static int clock_perf_direct_to_thread(const event_t *event)
{
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = event->tid};
    if (fcntl(event->fd, F_SETOWN_EX, &owner) != 0 || fcntl(event->fd, F_SETSIG, event->signal_number) != 0 ||
        fcntl(event->fd, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
        return -errno;
    return 0;
}

static int clock_perf_open_event(gp_timer_t *timer, pid_t tid)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.sample_period = gp_timer_draw(timer);
    attr.disabled = 1;
    // Kernel time included: without it a tick inside a system call is lost and its time goes to the next thread.
    gp_descriptor_low_begins();
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    int high = fd < 0 ? -errno : gp_descriptor_raise(fd);
    if (fd >= 0 && high < 0) // the low ones are the host's
        clock_perf_close_event(fd);
    gp_descriptor_low_ends();
    return high;
}

static int clock_perf_arm(gp_timer_t *timer, pid_t tid, int signal_number)
{
    event_t event = {.signal_number = signal_number, .tid = tid};
    clock_perf_event_of(timer)->fd = -1;
    // Where the user's queue is full, the kernel sends SIGIO in the place of a real-time signal, and that kills:
    // fcntl(2), F_SETSIG. Others come without a place in the queue.
    if (signal_number >= QUEUED_FIRST)
        return -ENOTSUP;
    event.fd = clock_perf_open_event(timer, tid);
    if (event.fd < 0)
        return event.fd;
    int error = clock_perf_direct_to_thread(&event);
    if (error == 0 &&
        (ioctl(event.fd, PERF_EVENT_IOC_ID, &event.id) != 0 || ioctl(event.fd, PERF_EVENT_IOC_ENABLE, 0) != 0))
        error = -errno;
    if (error != 0) {
        clock_perf_close_event(event.fd);
        return error;
    }
    *clock_perf_event_of(timer) = event;
    timer->armed = true;
    return 0;
}

// Where a sandbox refuses one call, another does: each of these ends the signals.
static void clock_perf_disarm(gp_timer_t *timer)
{
    event_t event = *clock_perf_event_of(timer);
    if (!timer->armed)
        return;
    timer->armed = false;
    clock_perf_event_of(timer)->fd = -1; // first: the handler may be about to use it
    if (!clock_perf_is_there(&event))
        return;
    if (ioctl(event.fd, PERF_EVENT_IOC_DISABLE, 0) != 0)
        fcntl(event.fd, F_SETFL, O_NONBLOCK);
    if (clock_perf_close_event(event.fd) != 0 && syscall(SYS_close_range, event.fd, event.fd, 0) != 0)
        atomic_store_explicit(&gp_clock_goes_on, true, memory_order_relaxed);
}

static void clock_perf_abandon(gp_timer_t *timer)
{
    // The event is shared with the parent: disabling it would stop the parent's.
    if (timer->armed && clock_perf_is_there(clock_perf_event_of(timer)))
        clock_perf_close_event(clock_perf_event_of(timer)->fd);
    timer->armed = false;
    clock_perf_event_of(timer)->fd = -1;
}

static void clock_perf_set_interval(gp_timer_t *timer, uint64_t ns)
{
    ioctl(clock_perf_event_of(timer)->fd, PERF_EVENT_IOC_PERIOD, &ns);
}

static bool clock_perf_is_alive(const gp_timer_t *timer)
{
    return clock_perf_is_there(clock_perf_event_of(timer));
}

static uint64_t clock_perf_overdue_ns(const gp_timer_t *timer, uint64_t used_ns, uint64_t cpu_ns)
{
    (void)cpu_ns;
    return gp_timer_beyond_ns(timer, used_ns);
}

static bool clock_perf_is_mine(const gp_timer_t *timer, const siginfo_t *info)
{
    // Source: fcntl(2) F_SETSIG: si_code is a POLL_* value and si_fd the descriptor.
    return info->si_code == SI_KERNEL || gp_clock_lacks_info(info) ||
           (info->si_code > 0 && info->si_fd == clock_perf_event_of(timer)->fd);
}

const gp_clock_engine_t gp_clock_perf = {
    .name = "perf",
    .id = GP_ENGINE_PERF,
    .gap_periods = 4, // every 1.5 by the clock itself
    .arm = clock_perf_arm,
    .disarm = clock_perf_disarm,
    .abandon = clock_perf_abandon,
    .set_interval = clock_perf_set_interval,
    .is_alive = clock_perf_is_alive,
    .is_mine = clock_perf_is_mine,
    .overdue_ns = clock_perf_overdue_ns,
};
