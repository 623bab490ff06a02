// SPDX-License-Identifier: MIT
// The part of greenlet_map.h that the handler reaches.
#include <errno.h>

#include "greenlet/greenlet_map.h"
#include "interpreter/task_step.h"
#include "signal/thread.h"

enum { ATTEMPTS = 8 }; // a record is written in a few nanoseconds, unless its writer has been interrupted

gp_greenlet_table_t *_Atomic gp_greenlet_table;
_Atomic uint32_t gp_greenlet_version;
__thread gp_greenlet_here_t gp_greenlet_here __attribute__((tls_model("initial-exec")));

static const void *greenlet_now_in(const gp_greenlet_t *slot)
{
    return __atomic_load_n(&slot->greenlet, __ATOMIC_RELAXED);
}

static bool greenlet_now_search(const gp_greenlet_table_t *table, const void *greenlet, gp_greenlet_t *record)
{
    size_t at = gp_greenlet_home(table, greenlet);
    for (size_t i = 0; i <= table->mask; i++, at = (at + 1) & table->mask) {
        const gp_greenlet_t *slot = &table->slots[at];
        const void *there = greenlet_now_in(slot);
        if (there == NULL)
            return false;
        if (there != greenlet)
            continue;
        *record = (gp_greenlet_t){
            .greenlet = there,
            .coro = __atomic_load_n(&slot->coro, __ATOMIC_RELAXED),
            .coro_id = __atomic_load_n(&slot->coro_id, __ATOMIC_RELAXED),
            .object = __atomic_load_n(&slot->object, __ATOMIC_RELAXED),
        };
        return true;
    }
    return false;
}

int gp_greenlet_read(const void *greenlet, gp_greenlet_t *record)
{
    const gp_greenlet_table_t *table = atomic_load_explicit(&gp_greenlet_table, memory_order_acquire);
    for (int i = 0; i < ATTEMPTS; i++) {
        uint32_t version = atomic_load_explicit(&gp_greenlet_version, memory_order_acquire); // write_slot()'s
        if (version & 1)
            continue;
        bool found = table != NULL && greenlet_now_search(table, greenlet, record);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&gp_greenlet_version, memory_order_relaxed) == version)
            return found;
    }
    return -EAGAIN;
}

prof_coro_t *gp_greenlet_unreported(uint64_t *id)
{
    const void *now = gp_language_running(gp_greenlet_here.state);
    if (now == NULL || now == gp_greenlet_here.last)
        return NULL;
    if (now == gp_step_here.greenlet && gp_step_here.coro != NULL) {
        *id = gp_step_here.coro_id;
        return gp_step_here.coro;
    }
    gp_thread_t *thread = gp_thread_self;
    gp_greenlet_t record;
    int found = gp_greenlet_read(now, &record);
    if (found < 0 && atomic_load_explicit(&gp_language_reads, memory_order_relaxed))
        gp_thread_count(thread, GP_COUNTER_POLL_MISFIT);
    if (found < 0)
        return NULL;
    bool is_main = found == 0 && now == (*gp_greenlet_here.state)[0];
    uint64_t its_id = found > 0 ? record.coro_id : is_main ? thread->root_id : 0;
    if (its_id == 0) // over, and the one that goes on has been reported
        return NULL;
    *id = its_id;
    return found > 0 ? record.coro : thread->root;
}
