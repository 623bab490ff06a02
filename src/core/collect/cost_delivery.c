// SPDX-License-Identifier: MIT
// A signal's cost beside its handler: the CPU time of a piece of work with a timer, less its time without one.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/cost.h"
#include "collect/drain_lock.h"
#include "collect/sampling_signal.h"
#include "signal/clock_engine.h"
#include "signal/mask.h"
#include "signal/ticks.h"

enum {
    TURNS = 5,
    WORK_NS = 1500000,   // a turn, and once more without a timer
    TIMER_HZ = 5000,     // during it; where a signal takes 70 us, as on some virtual machines, work still goes on
    SENT = 20,           // signals a turn, where the engine is none that could be measured in so short a time
    LONGEST_NS = 200000, // what is more is no signal's price
    MEMORY_BYTES = 512 << 10,
    STRIDE_BYTES = 4096 + 64,
};

static _Atomic uint64_t delivery_ns;
static volatile uint8_t *memory; // while it is measured
static struct {
    uint64_t signals, ns; // at prices that held before
} settled;                // guarded by the drain lock

uint64_t gp_cost_delivery_ns(void)
{
    return atomic_load_explicit(&delivery_ns, memory_order_relaxed);
}

void gp_cost_set_delivery(uint64_t ns)
{
    atomic_store_explicit(&delivery_ns, ns, memory_order_relaxed);
}

uint64_t gp_cost_delivery_of(uint64_t signals)
{
    uint64_t since = signals > settled.signals ? signals - settled.signals : 0;
    return settled.ns + since * gp_cost_delivery_ns();
}

void gp_cost_delivery_in_child(void)
{
    settled.signals = settled.ns = 0;
}

static void cost_delivery_settle(uint64_t ns, uint64_t signals)
{
    uint64_t known_ns = gp_cost_delivery_ns();
    gp_drain_take();
    if (known_ns != 0) {
        settled.ns = gp_cost_delivery_of(signals);
        settled.signals = signals;
    }
    gp_cost_set_delivery(known_ns != 0 ? (known_ns + ns) / 2 : ns);
    gp_drain_leave();
}

// As programs do, it uses memory: the kernel's part and the handler's are not in the caches when a signal comes.
static void cost_delivery_work(uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++)
        memory[i * STRIDE_BYTES % MEMORY_BYTES]++;
}

static uint64_t cost_delivery_time_of(uint64_t steps)
{
    uint64_t start = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    cost_delivery_work(steps);
    return gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static uint64_t cost_delivery_find_steps(void)
{
    enum { FEW = 100000 };
    uint64_t took_ns = cost_delivery_time_of(FEW);
    return took_ns > 0 ? (uint64_t)FEW * WORK_NS / took_ns : FEW;
}

typedef struct turn {
    uint64_t extra_ns, signals, handler_ns;
} turn_t;

static uint64_t cost_delivery_signals_of(const gp_thread_t *block)
{
    return atomic_load_explicit(&block->counters[GP_COUNTER_SIGNALS], memory_order_relaxed);
}

// The engine's own timer: only that of perf goes off often enough within a few milliseconds.
static bool cost_delivery_with_timer(gp_thread_t *block, uint64_t steps, uint64_t *took_ns)
{
    gp_timer_prepare(&block->timer, TIMER_HZ, (uint32_t)gp_ticks());
    if (gp_clock_perf.arm(&block->timer, (pid_t)syscall(SYS_gettid), gp_sampling_signal()) != 0)
        return false;
    *took_ns = cost_delivery_time_of(steps);
    gp_clock_perf.disarm(&block->timer);
    return true;
}

// Other engines' timers go off in what the kernel does anyway; a signal that is sent stands for them.
static void cost_delivery_with_signals(uint64_t steps, uint64_t *took_ns)
{
    pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
    uint64_t start = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < SENT; i++) {
        syscall(SYS_tgkill, pid, tid, gp_sampling_signal());
        cost_delivery_work(steps / SENT);
    }
    *took_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
}

static bool cost_delivery_take_turn(gp_thread_t *block, enum gp_engine engine, uint64_t steps, uint64_t bare_ns,
                                    turn_t *turn)
{
    uint64_t with_ns = 0, before = cost_delivery_signals_of(block);
    uint64_t handler = atomic_load_explicit(&block->counters[GP_COUNTER_HANDLER_NS], memory_order_relaxed);
    if (engine != GP_ENGINE_PERF)
        cost_delivery_with_signals(steps, &with_ns);
    else if (!cost_delivery_with_timer(block, steps, &with_ns))
        return false;
    turn->signals = cost_delivery_signals_of(block) - before;
    turn->handler_ns = atomic_load_explicit(&block->counters[GP_COUNTER_HANDLER_NS], memory_order_relaxed) - handler;
    turn->extra_ns = with_ns > bare_ns ? with_ns - bare_ns : 0;
    return turn->signals > 0;
}

static int cost_delivery_by_size(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

// The median of some turns; 0 = none worked.
static uint64_t cost_delivery_measure(gp_thread_t *block, enum gp_engine engine)
{
    uint64_t each[TURNS];
    size_t count = 0;
    uint64_t steps = cost_delivery_find_steps();
    for (int i = 0; i < TURNS; i++) {
        turn_t turn;
        if (!cost_delivery_take_turn(block, engine, steps, cost_delivery_time_of(steps), &turn))
            continue;
        uint64_t ns = turn.extra_ns > turn.handler_ns ? (turn.extra_ns - turn.handler_ns) / turn.signals : 0;
        each[count++] = ns < LONGEST_NS ? ns : LONGEST_NS;
    }
    qsort(each, count, sizeof(each[0]), cost_delivery_by_size);
    return count > 0 ? each[count / 2] : 0;
}

// A block that no list has: the handler counts into it, takes no sample (no engine is noted in it), and leaves.
void gp_cost_calibrate(enum gp_engine engine, uint64_t signals_so_far)
{
    gp_thread_t *before = gp_thread_self;
    size_t size = sizeof(gp_thread_t) + MEMORY_BYTES;
    gp_thread_t *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigset_t signals, old;
    if (block == MAP_FAILED)
        return;
    memory = (volatile uint8_t *)(block + 1);
    for (size_t i = 0; i < MEMORY_BYTES; i += 4096) // it is there before anything is timed
        memory[i] = 1;
    gp_sampling_signal_set(&signals);
    gp_thread_self = block;
    gp_mask_change(SIG_UNBLOCK, &signals, &old);
    uint64_t ns = cost_delivery_measure(block, engine);
    gp_mask_change(SIG_SETMASK, &old, NULL);
    gp_thread_self = before;
    munmap(block, size);
    if (ns > 0)
        cost_delivery_settle(ns, signals_so_far);
}
