// SPDX-License-Identifier: MIT
// Clock engine `cpu`: a POSIX timer on a thread's CPU clock that signals that thread (SIGEV_THREAD_ID).
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

static void set_interval(gp_timer_t *timer, uint64_t ns)
{
    struct timespec interval = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    struct itimerspec value = {.it_interval = interval, .it_value = interval};
    timer_settime(timer->id, 0, &value, NULL);
}

static int arm(gp_timer_t *timer, pid_t tid, int signal_number)
{
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_number;
    event.sigev_value.sival_ptr = timer;
    event.sigev_notify_thread_id = tid;
    if (timer_create(gp_thread_clock(tid), &event, &timer->id) != 0)
        return errno == EINVAL && syscall(SYS_tgkill, getpid(), tid, 0) != 0 ? -ESRCH
                                                                             : -errno; // it has ended meanwhile
    timer->armed = true;
    set_interval(timer, gp_timer_draw(timer));
    return 0;
}

static void disarm(gp_timer_t *timer)
{
    if (timer->armed)
        timer_delete(timer->id);
    timer->armed = false;
}

static void abandon(gp_timer_t *timer)
{
    timer->armed = false; // timers are not inherited
}

static bool is_alive(const gp_timer_t *timer)
{
    return timer->armed;
}

static bool is_mine(const gp_timer_t *timer, const siginfo_t *info)
{
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == timer;
}

const gp_clock_engine_t gp_clock_cpu = {"cpu",        GP_ENGINE_CPU, arm,     disarm, abandon,
                                        set_interval, is_alive,      is_mine, NULL};
