// SPDX-License-Identifier: MIT
#include "collect/ready_threads.h"

#include <string.h>

gp_thread_set_t gp_ready_threads, gp_ready_threads_lookers;
static uint32_t used_words; // of either set, so far

// From here on it tells again.
static void ready_threads_listen(uint32_t word, uint64_t told)
{
    for (; told != 0; told &= told - 1) {
        gp_thread_t *thread =
            atomic_load_explicit(&gp_thread_blocks[word * 64 + (uint32_t)__builtin_ctzll(told)], memory_order_acquire);
        // Acquire and release: partner of the exchange in gp_thread_notify(). In one order with gp_thread_commit().
        atomic_exchange(&thread->has_news, false);
    }
}

void gp_ready_threads_take(void)
{
    while (used_words < GP_THREADS_MAX / 64 &&
           atomic_load_explicit(&gp_thread_blocks[used_words * 64], memory_order_acquire) != NULL)
        used_words++;
    for (uint32_t i = 0; i < used_words; i++) {
        if (atomic_load(&gp_thread_notified[i]) == 0)
            continue;
        // Acquire: partner of the release in gp_thread_notify().
        uint64_t told = atomic_exchange_explicit(&gp_thread_notified[i], 0, memory_order_acquire);
        ready_threads_listen(i, told);
        gp_ready_threads.words[i] |= told;
        gp_ready_threads_lookers.words[i] |= told;
    }
}

gp_thread_t *gp_thread_set_next(const gp_thread_set_t *set, uint32_t *slot)
{
    for (uint32_t word = *slot / 64; word < used_words; *slot = ++word * 64) {
        uint64_t left = set->words[word] >> *slot % 64;
        if (left == 0)
            continue;
        uint32_t found = *slot + (uint32_t)__builtin_ctzll(left);
        *slot = found + 1;
        return atomic_load_explicit(&gp_thread_blocks[found], memory_order_acquire);
    }
    return NULL;
}

void gp_thread_set_remove(gp_thread_set_t *set, const gp_thread_t *thread)
{
    set->words[thread->slot / 64] &= ~(1ull << thread->slot % 64);
}

void gp_ready_threads_look_at_all(void)
{
    atomic_store(&gp_thread_notifies_birth, true);
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load(&thread->state) == GP_THREAD_LIVE)
            gp_ready_threads_lookers.words[thread->slot / 64] |= 1ull << thread->slot % 64;
}

bool gp_ready_threads_doze(bool for_long)
{
    uint32_t slot = 0;
    // In one order with what gp_thread_notify_first() and gp_thread_notify_at_once() do.
    atomic_store(&gp_thread_wakes, for_long ? GP_THREAD_WAKES_ANY : GP_THREAD_WAKES_AT_ONCE);
    gp_ready_threads_take();
    if (gp_thread_set_next(&gp_ready_threads_lookers, &slot) != NULL)
        gp_ready_threads_wake();
    return atomic_load_explicit(&gp_thread_wakes, memory_order_relaxed) != GP_THREAD_WAKES_NONE;
}

void gp_ready_threads_wake(void)
{
    atomic_store_explicit(&gp_thread_wakes, GP_THREAD_WAKES_NONE, memory_order_relaxed);
}

void gp_ready_threads_forget(void)
{
    gp_ready_threads_wake();
    memset(&gp_ready_threads, 0, used_words * sizeof(gp_ready_threads.words[0]));
    memset(&gp_ready_threads_lookers, 0, used_words * sizeof(gp_ready_threads.words[0]));
}
