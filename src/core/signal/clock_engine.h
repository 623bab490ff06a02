// SPDX-License-Identifier: MIT
// Clock engines: what makes a thread receive the sampling signal after so much of its time.
//
// Model: one engine is chosen when sampling starts; each thread gets a timer of it, with signals to this very thread. A
// thread that cannot have one (no descriptor is left) gets one of the engine `cpu`, which needs none. The interval is
// drawn anew, uniformly from [0.5, 1.5) periods, every few samples: work in lock-step with the period is sampled at
// every phase. Samples are weighted by the CPU time really passed, so the period itself is no weight.
//   perf       software task-clock: on-CPU time of the thread, kernel time included, any rate up to ~20 kHz
//   cpu        timer on the thread's CPU clock: at most the kernel's tick (250/s at HZ=250)
//   monotonic  a thread of greenprof's own, by CLOCK_MONOTONIC, signals running threads: any rate; costs this thread's
//              time, also while all others wait
// An engine is its file, clock_NAME.c, and a row of model/engines.h.
// setitimer() is no engine: it survives exec and kills the next program.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "model/kinds.h"
#include "signal/thread.h"

typedef struct gp_clock_engine {
    const char *name;
    enum gp_engine id;
    // A sample is overdue after so many periods, or after so many ns where that is longer. Collector: is it worth to
    // ask why? See collect/cpu_without_sample.h.
    unsigned gap_periods, gap_min_ns;
    // Start what timers need beside themselves; NULL = nothing. Returns 0 or a negative errno value. Before arm(),
    // under the sampler's lock. Not in a handler. Idempotent.
    int (*start)(void);
    // Give thread `tid` of this process a timer with signals to this thread. Returns 0 or a negative errno value: ESRCH
    // where it has ended meanwhile, ENOTSUP where it cannot be by this signal. Not in a handler.
    int (*arm)(gp_timer_t *timer, pid_t tid, int signal_number);
    // Take it away. Any thread. Not in a handler. Idempotent.
    void (*disarm)(gp_timer_t *timer);
    // Forget a timer that belongs to the parent, in a forked child: without stopping the parent's.
    void (*abandon)(gp_timer_t *timer);
    // Change the interval to `ns`. The handler, on the timer's own thread; or arm().
    void (*set_interval)(gp_timer_t *timer, uint64_t ns);
    // Does an armed timer still exist? Hosts close descriptors they do not know. Not in a handler.
    bool (*is_alive)(const gp_timer_t *timer);
    // Did this signal come from this timer? Signals: safe.
    bool (*is_mine)(const gp_timer_t *timer, const siginfo_t *info);
    // For how much of this CPU time has the signal, which has come now, waited? 0 where that may be chance. The
    // handler.
    //   used_ns: since the sample before; cpu_ns: the thread's CPU clock.
    uint64_t (*overdue_ns)(const gp_timer_t *timer, uint64_t used_ns, uint64_t cpu_ns);
    // Is the thread not at work, as it was taken to be? NULL = it must be. The handler.
    bool (*is_late)(gp_timer_t *timer, const ucontext_t *context);
} gp_clock_engine_t;

#define GP_CLOCK_DECLARE(number, id, name) extern const gp_clock_engine_t gp_clock_##name;
GP_ENGINES(GP_CLOCK_DECLARE)
#undef GP_CLOCK_DECLARE

// Did a signal of the kernel's lose its siginfo? There was no room for one: the limit (RLIMIT_SIGPENDING) is the
// user's, and blocked signals and timers of all processes count. No other sender's looks so, but from outside of the
// process id namespace. Source: Linux, kernel/signal.c, collect_signal().
static inline bool gp_clock_lacks_info(const siginfo_t *info)
{
    return info->si_code == SI_USER && info->si_pid == 0 && info->si_uid == 0;
}

// A timer could not be taken away: its signals go on, and need their handler. Any thread.
extern _Atomic bool gp_clock_goes_on;

// Is it the descriptor of an event by which a thread of this process is sampled? Signals: safe; changes errno.
bool gp_clock_perf_owns(int fd);

// Has the thread ended? Changes errno. Not in a handler.
bool gp_clock_has_ended(pid_t tid);

// All of them, in order of preference, ended by NULL.
extern const gp_clock_engine_t *const gp_clock_engines[];

// An engine by name, or NULL.
const gp_clock_engine_t *gp_clock_engine_find(const char *name);

// Prepare a timer for `frequency_hz` (1..20000); before arm().
void gp_timer_prepare(gp_timer_t *timer, unsigned frequency_hz, uint32_t seed);

// engine->arm(), with the engine noted: the handler goes by it, and what follows. The timer is prepared, not armed.
int gp_timer_arm(gp_timer_t *timer, const gp_clock_engine_t *engine, pid_t tid, int signal_number);

// The engine's disarm(). Any thread. Not in a handler. Idempotent; harmless on one that was never armed.
void gp_timer_disarm(gp_timer_t *timer);

// The engine's abandon() and is_alive().
void gp_timer_abandon(gp_timer_t *timer);
bool gp_timer_is_alive(const gp_timer_t *timer);

// CPU time, ns, after which a sample is overdue; 0 where it was never armed.
uint64_t gp_timer_longest_gap_ns(const gp_timer_t *timer);

// Is this too much for one sample of the period? Signals: safe.
bool gp_timer_is_costly(const gp_timer_t *timer, uint64_t cost_ns);

// Charge a sample's cost in the thread's CPU time, ns. Where the mean is too much, the intervals grow: some engines
// count the handler's own time, so a handler that takes longer than its interval would leave the program none. Signals:
// safe.
void gp_timer_charge(gp_timer_t *timer, uint64_t cost_ns);

// Count a sample and draw a new interval when it is due. Signals: safe. Cost: a system call at the end of
// each block (clock_engine.c): every 8 samples at 1000 Hz, every sample at 5000 Hz.
void gp_timer_tick(gp_timer_t *timer, const gp_clock_engine_t *engine);

// The next interval, ns.
uint64_t gp_timer_draw(gp_timer_t *timer);

// The part of `used_ns` beyond the interval in force. Signals: safe.
uint64_t gp_timer_beyond_ns(const gp_timer_t *timer, uint64_t used_ns);
