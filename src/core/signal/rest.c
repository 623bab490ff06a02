// SPDX-License-Identifier: MIT
#include "signal/rest.h"

#include "signal/ticks.h"

_Atomic bool gp_rest_is_on;
static _Atomic uint64_t over; // when the latest one ended, ticks
static _Atomic uint64_t count, began, ticks, began_cpu_ns, cpu_sum_ns;

static uint64_t rest_load(_Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void rest_store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t rest_since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void gp_rest_begin(uint64_t cpu_ns)
{
    rest_store(&count, rest_load(&count) + 1);
    rest_store(&began, gp_ticks());
    rest_store(&began_cpu_ns, cpu_ns);
    atomic_store_explicit(&gp_rest_is_on, true, memory_order_release);
}

void gp_rest_end(uint64_t cpu_ns)
{
    uint64_t now = gp_ticks();
    rest_store(&over, now);
    rest_store(&ticks, rest_load(&ticks) + rest_since(now, rest_load(&began)));
    rest_store(&cpu_sum_ns, rest_load(&cpu_sum_ns) + rest_since(cpu_ns, rest_load(&began_cpu_ns)));
    // Release: a reader that sees the end sees its time.
    atomic_store_explicit(&gp_rest_is_on, false, memory_order_release);
}

bool gp_rest_overlaps(uint64_t from)
{
    // Acquire: partner of the release in gp_rest_end().
    return atomic_load_explicit(&gp_rest_is_on, memory_order_acquire) || from < rest_load(&over);
}

void gp_rest_read(uint64_t cpu_ns, gp_rest_sums_t *sums)
{
    bool is_on = atomic_load_explicit(&gp_rest_is_on, memory_order_acquire);
    *sums = (gp_rest_sums_t){
        .count = rest_load(&count),
        .ns = gp_ticks_to_ns(rest_load(&ticks) + (is_on ? rest_since(gp_ticks(), rest_load(&began)) : 0)),
        .cpu_ns = rest_load(&cpu_sum_ns) + (is_on ? rest_since(cpu_ns, rest_load(&began_cpu_ns)) : 0),
    };
}

void gp_rest_in_child(void)
{
    rest_store(&count, 0);
    rest_store(&ticks, 0);
    rest_store(&cpu_sum_ns, 0);
    rest_store(&over, 0);
    atomic_store_explicit(&gp_rest_is_on, false, memory_order_relaxed);
}
