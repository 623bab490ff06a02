// SPDX-License-Identifier: MIT
// Clock engine `cpu`: a POSIX timer on a thread's CPU clock, with signals to this very thread (SIGEV_THREAD_ID).
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "signal/clock_engine.h"
#include "signal/ticks.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

_Static_assert(sizeof(timer_t) <= sizeof(((gp_timer_t *)0)->state), "an engine's state fits into a timer");

static timer_t *clock_cpu_id_of(gp_timer_t *timer)
{
    return (timer_t *)timer->state;
}

static int clock_cpu_set(gp_timer_t *timer, uint64_t ns)
{
    struct timespec interval = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    struct itimerspec value = {.it_interval = interval, .it_value = interval};
    return timer_settime(*clock_cpu_id_of(timer), 0, &value, NULL);
}

static void clock_cpu_set_interval(gp_timer_t *timer, uint64_t ns)
{
    clock_cpu_set(timer, ns);
}

static int clock_cpu_arm(gp_timer_t *timer, pid_t tid, int signal_number)
{
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_number;
    event.sigev_value.sival_ptr = timer;
    event.sigev_notify_thread_id = tid;
    if (timer_create(gp_thread_clock(tid), &event, clock_cpu_id_of(timer)) != 0)
        return errno == EINVAL && gp_clock_has_ended(tid) ? -ESRCH : -errno;
    if (clock_cpu_set(timer, gp_timer_draw(timer)) != 0) { // a sandbox refuses it
        int error = -errno;
        timer_delete(*clock_cpu_id_of(timer));
        return error;
    }
    timer->armed = true;
    return 0;
}

// Where a sandbox refuses one call, another does.
static void clock_cpu_disarm(gp_timer_t *timer)
{
    if (timer->armed && timer_delete(*clock_cpu_id_of(timer)) != 0 && clock_cpu_set(timer, 0) != 0)
        atomic_store_explicit(&gp_clock_goes_on, true, memory_order_relaxed);
    timer->armed = false;
}

static void clock_cpu_abandon(gp_timer_t *timer)
{
    timer->armed = false; // timers are not inherited
}

static bool clock_cpu_is_alive(const gp_timer_t *timer)
{
    return timer->armed;
}

// The kernel looks at its ticks, and the thread may not run at the next one.
static uint64_t clock_cpu_overdue_ns(const gp_timer_t *timer, uint64_t used_ns, uint64_t cpu_ns)
{
    enum { TICKS = 2 };
    struct timespec tick = {0};
    (void)cpu_ns;
    uint64_t beyond_ns = gp_timer_beyond_ns(timer, used_ns);
    if (beyond_ns == 0 || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
        return 0;
    return beyond_ns > TICKS * (uint64_t)tick.tv_nsec ? beyond_ns - (uint64_t)tick.tv_nsec / 2 : 0;
}

static bool clock_cpu_is_mine(const gp_timer_t *timer, const siginfo_t *info)
{
    return gp_clock_lacks_info(info) || (info->si_code == SI_TIMER && info->si_value.sival_ptr == timer);
}

const gp_clock_engine_t gp_clock_cpu = {
    .name = "cpu",
    .id = GP_ENGINE_CPU,
    .gap_periods = 4,
    .gap_min_ns = 20000000, // a timer comes every 1.5 kernel ticks, HZ >= 100
    .arm = clock_cpu_arm,
    .disarm = clock_cpu_disarm,
    .abandon = clock_cpu_abandon,
    .set_interval = clock_cpu_set_interval,
    .is_alive = clock_cpu_is_alive,
    .is_mine = clock_cpu_is_mine,
    .overdue_ns = clock_cpu_overdue_ns,
};
