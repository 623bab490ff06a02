// SPDX-License-Identifier: MIT
#include "trace/span_id.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

#include "signal/ticks.h"

static _Atomic uint64_t id_seed, trace_count;

static uint64_t span_id_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u; // Source: Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    x = (x ^ x >> 27) * 0x94d049bb133111ebu; // Generators (SplitMix64)
    return x ^ x >> 31;
}

// span_id_mix() backwards: by the factors' inverses modulo 2^64.
static uint64_t span_id_unmix(uint64_t x)
{
    x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3u;
    x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089u;
    return x ^ x >> 30 ^ x >> 60;
}

static uint64_t span_id_seed(void)
{
    uint64_t now = atomic_load_explicit(&id_seed, memory_order_relaxed), fresh = 0;
    if (now != 0)
        return now;
    if (getrandom(&fresh, sizeof(fresh), GRND_NONBLOCK) != sizeof(fresh))
        fresh = span_id_mix(gp_ticks()) ^ gp_clock_ns(CLOCK_REALTIME);
    fresh |= 1;
    return atomic_compare_exchange_strong_explicit(&id_seed, &now, fresh, memory_order_relaxed, memory_order_relaxed)
               ? fresh
               : now;
}

static uint64_t span_id_not_zero(uint64_t id)
{
    return id != 0 ? id : 1;
}

uint64_t gp_span_id_of(uint64_t handle)
{
    return span_id_not_zero(span_id_mix(span_id_seed() + handle));
}

uint64_t gp_span_id_handle(uint64_t id)
{
    return span_id_unmix(id) - span_id_seed();
}

void gp_span_id_new_trace(uint64_t trace[2])
{
    uint64_t count = atomic_fetch_add_explicit(&trace_count, 2, memory_order_relaxed);
    for (unsigned i = 0; i < 2; i++) // odd, as no handle of a span is
        trace[i] = span_id_not_zero(span_id_mix(span_id_seed() + ((count + i) * 0x9e3779b97f4a7c15u | 1)));
}

void gp_span_ids_after_fork(void)
{
    atomic_store_explicit(&id_seed, 0, memory_order_relaxed);
}
