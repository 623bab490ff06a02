// SPDX-License-Identifier: MIT
// The part of greenlet_map.h that the handler reaches.
#include "greenlet/greenlet_map.h"
#include "interpreter/task_step.h"
#include "signal/thread.h"

gp_greenlet_table_t gp_greenlet_table;
__thread gp_greenlet_here_t gp_greenlet_here __attribute__((tls_model("initial-exec")));

size_t gp_greenlet_slot(const void *greenlet)
{
    size_t slot = gp_greenlet_home(greenlet);
    while (gp_greenlet_table.slots[slot].greenlet != NULL && gp_greenlet_table.slots[slot].greenlet != greenlet)
        slot = (slot + 1) & gp_greenlet_table.mask;
    return slot;
}

gp_greenlet_t *gp_greenlet_find(const void *greenlet)
{
    if (gp_greenlet_table.slots == NULL)
        return NULL;
    gp_greenlet_t *found = &gp_greenlet_table.slots[gp_greenlet_slot(greenlet)];
    return found->greenlet != NULL ? found : NULL;
}

prof_coro_t *gp_greenlet_unreported(uint64_t *id)
{
    const void *now = gp_language_running(gp_greenlet_here.state);
    if (now == NULL || now == gp_greenlet_here.last ||
        atomic_load_explicit(&gp_greenlet_table.changing, memory_order_relaxed))
        return NULL;
    if (now == gp_step_here.greenlet && gp_step_here.coro != NULL) {
        *id = gp_step_here.coro_id;
        return gp_step_here.coro;
    }
    // It differs between a switch and its report only: this thread holds the interpreter lock, so the table
    // does not change.
    gp_greenlet_t *found = gp_greenlet_find(now);
    gp_thread_t *thread = gp_thread_self;
    *id = found != NULL ? found->coro_id : now == (*gp_greenlet_here.state)[0] ? thread->root_id : 0;
    return *id == 0 ? NULL : found != NULL ? found->coro : thread->root;
}
