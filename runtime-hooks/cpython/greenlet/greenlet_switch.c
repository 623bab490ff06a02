// SPDX-License-Identifier: MIT
// Reports switches of greenlets to the core, however they are seen, and which coroutine the running greenlet is.
#include "coro/hook_cost.h"
#include "coro/registry.h"
#include "coro/switch.h"
#include "coro/threads.h"
#include "greenlet/greenlet_native.h"
#include "greenlet/greenlet_records.h"
#include "greenlet/greenlet_run.h"
#include "greenlet/greenlet_trace.h"
#include "greenlet/hubs.h"
#include "greenlet/walk_parked.h"

static void greenlet_switch_tell(prof_coro_t *coro, uint64_t coro_id)
{
    // No place to go on: its native stack is saved elsewhere while it is parked.
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    gp_switch_to(coro, coro_id, &park);
}

// From here on the handler trusts the last report while this greenlet runs, and looks for itself while another one
// does.
static inline void greenlet_switch_note(gp_py_t *greenlet)
{
    atomic_signal_fence(memory_order_seq_cst);
    gp_greenlet_here.last = gp_language_is_read() ? NULL : greenlet;
    atomic_signal_fence(memory_order_seq_cst);
}

// `greenlet` will go on, its frames are not there yet: see gp_task_step_t.waiting.
static inline void greenlet_switch_tell_ahead(gp_py_t *greenlet, prof_coro_t *coro, uint64_t coro_id, uintptr_t waiting)
{
    gp_hub_before_switch(gp_greenlet_here.last, coro);
    gp_step_here.waiting = waiting;
    greenlet_switch_note(greenlet);
    greenlet_switch_tell(coro, coro_id);
    gp_step_here.waiting = 0;
}

void gp_greenlet_switch_to(gp_py_t *greenlet)
{
    gp_greenlet_t to = gp_greenlet_record_here(greenlet);
    gp_hub_before_switch(gp_greenlet_here.last, to.coro);
    greenlet_switch_tell(to.coro, to.coro_id);
    greenlet_switch_note(greenlet);
}

// The hint is what the last switch left, or nothing where sampling has begun anew.
static void greenlet_switch_sync_hint(void)
{
    gp_thread_t *thread = gp_thread_attach();
    gp_py_t *current = gp_greenlet_api.current();
    if (current == NULL)
        return;
    prof_coro_t *coro = gp_greenlet_record_here(current).coro;
    if (thread != NULL &&
        (thread->epoch != atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed) ||
         (coro != NULL ? coro : thread->root) != atomic_load_explicit(&thread->current, memory_order_relaxed)))
        gp_greenlet_switch_to(current);
    else if (!gp_language_is_read())
        gp_greenlet_here.last = current;
    gp_py.decref(current);
}

bool gp_greenlet_is_entered(void)
{
    bool is_new = gp_greenlet_here.epoch != atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    return gp_greenlet_api.sees ? gp_greenlet_here.state != NULL && !(is_new && gp_greenlet_is_sampling())
                                : gp_greenlet_is_traced();
}

// Stacks are asked for while nothing samples: any greenlet that is suspended shows where its frames are.
static void greenlet_switch_learn_from_any(void)
{
    const gp_greenlet_table_t *table = atomic_load_explicit(&gp_greenlet_table, memory_order_relaxed);
    for (size_t i = 0; table != NULL && i <= table->mask && !gp_cpython_parked_is_known(); i++) {
        const gp_greenlet_t *slot = &table->slots[i];
        if (slot->greenlet != NULL && !(gp_coro_rare(slot->coro)->object & GP_CPYTHON_IS_TASK) &&
            gp_greenlet_api.is_active((gp_py_t *)slot->greenlet))
            gp_cpython_parked_learn((gp_py_t *)slot->greenlet);
    }
}

bool gp_greenlet_enter(void)
{
    if (!gp_greenlet_api.is_hooked)
        return false;
    if (!gp_py_has_lock())
        return true;
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    if (!gp_cpython_parked_is_known())
        greenlet_switch_learn_from_any();
    gp_greenlet_api.sees = gp_greenlet_api.sees && (gp_language_is_read() || gp_greenlet_see_switches());
    if (gp_greenlet_api.sees)
        gp_greenlet_find_state((gp_py_t *)(uintptr_t)gp_greenlet_current());
    else if (!gp_greenlet_is_traced())
        gp_greenlet_trace();
    if (gp_greenlet_is_sampling()) {
        gp_greenlet_here.epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
        greenlet_switch_sync_hint();
    }
    gp_py.error_restore(error[0], error[1], error[2]);
    return true;
}

static bool greenlet_switch_is_booked(void)
{
    return gp_greenlet_is_sampling() && !gp_language_is_read();
}

// Does a greenlet run on this thread? Its record's `hook_mark` has the number of the thread's block, and one. For main
// greenlets, and older ones than the mark, the main one at the end of their line of parents tells.
__attribute__((noinline, cold)) static bool greenlet_switch_leads_here(gp_py_t *greenlet, prof_coro_t *coro)
{
    gp_py_t *error[3], *at = greenlet;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    while (at != NULL && at != gp_py.none && !gp_greenlet_api.is_main(at)) {
        at = gp_py.get_attr(at, "parent");
        gp_py.drop(at); // its child keeps it
    }
    gp_py.error_restore(error[0], error[1], error[2]);
    bool is_here = at != NULL && at == gp_greenlet_main();
    if (is_here && coro != NULL && gp_thread_self != NULL)
        coro->hook_mark = gp_thread_self->index + 1;
    return is_here;
}

// Who runs has not been reported: sampling has begun since, or greenlet refused the last switch.
//   suspended: NULL = none is known.
__attribute__((noinline, cold)) static void greenlet_switch_catch_up(gp_py_t *suspended)
{
    if (!gp_greenlet_is_entered())
        gp_greenlet_enter();
    else
        greenlet_switch_sync_hint();
    if (!gp_cpython_parked_is_known() && suspended != NULL)
        gp_cpython_parked_learn(suspended);
}

// The rare cases of a switch: a task's greenlet, one not known yet, or another thread's, which will be refused.
__attribute__((noinline, cold)) static bool greenlet_switch_find_slowly(gp_py_t *to, gp_greenlet_t *record)
{
    *record = gp_greenlet_record_here(to);
    bool is_own =
        record->coro != NULL && gp_thread_self != NULL && record->coro->hook_mark == gp_thread_self->index + 1;
    return is_own || greenlet_switch_leads_here(to, record->coro);
}

static inline bool greenlet_switch_find_next(gp_py_t *to, prof_coro_t **coro, uint64_t *id)
{
    const gp_thread_t *thread = gp_thread_self;
    bool is_plain = gp_step_here.task == NULL && thread != NULL;
    *coro = NULL;
    *id = 0;
    if (is_plain && to == gp_greenlet_main())
        return true;
    const gp_greenlet_t *found = is_plain ? gp_greenlet_find_fast(to) : NULL;
    if (__builtin_expect(found == NULL || found->coro == NULL || found->coro->hook_mark != thread->index + 1, 0)) {
        gp_greenlet_t record;
        bool is_own = greenlet_switch_find_slowly(to, &record);
        *coro = record.coro;
        *id = record.coro_id;
        return is_own;
    }
    *coro = found->coro;
    *id = found->coro_id;
    return true;
}

// The frames of what is about to go on are with its greenlet still.
static inline void greenlet_switch_go_on(gp_py_t *to)
{
    prof_coro_t *coro;
    uint64_t id;
    if (!greenlet_switch_find_next(to, &coro, &id))
        return;
    greenlet_switch_tell_ahead(to, coro, id, (uintptr_t)to | GP_STEP_IS_GREENLET);
}

// A greenlet that is over waits for nothing any more, however long its object is kept.
static void greenlet_switch_end(gp_py_t *greenlet, bool has_left)
{
    const gp_greenlet_t *found = gp_greenlet_find(greenlet);
    if (found != NULL && !has_left) // the next one has not begun yet
        gp_coro_ends(found->coro, found->coro_id);
    else if (found != NULL)
        gp_coro_retire(gp_greenlet_take(greenlet));
}

void gp_greenlet_leaving(gp_py_t *from, bool is_over, gp_py_t *to)
{
    if (gp_language_is_read())
        return;
    uint64_t begun = gp_hook_cost_begin();
    bool is_known = from == gp_greenlet_here.last &&
                    gp_greenlet_here.epoch == atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    if (__builtin_expect(!is_known || !gp_cpython_parked_is_known(), 0))
        greenlet_switch_catch_up(to != from ? to : NULL);
    if (to != NULL && to != from)
        greenlet_switch_go_on(to);
    if (is_over)
        greenlet_switch_end(from, to != NULL);
    gp_hook_cost_end(begun, 1);
}

void gp_greenlet_starting(gp_py_t *to)
{
    if (!greenlet_switch_is_booked())
        return;
    uint64_t begun = gp_hook_cost_begin();
    gp_greenlet_t record = gp_greenlet_record_here(to);
    if (record.coro != NULL && gp_thread_self != NULL)
        record.coro->hook_mark = gp_thread_self->index + 1;
    // The frames are the starter's.
    greenlet_switch_tell_ahead(to, record.coro, record.coro_id, GP_STEP_HAS_NOT_BEGUN);
    gp_hook_cost_end(begun, 1);
}

void gp_greenlet_switched(void)
{
    if (!gp_greenlet_is_entered())
        gp_greenlet_enter();
    gp_py_t *now = (gp_py_t *)(uintptr_t)gp_language_running(gp_greenlet_here.state);
    if (now != NULL && now != gp_greenlet_here.last && greenlet_switch_is_booked())
        gp_greenlet_switch_to(now);
}

static void greenlet_switch_run_as(const gp_greenlet_t *record, uintptr_t waiting)
{
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    gp_greenlet_put(record);
    gp_step_here.waiting = waiting;
    if (greenlet_switch_is_booked())
        gp_switch_to(record->coro, record->coro_id, &park);
    gp_step_here.waiting = 0;
}

bool gp_greenlet_lend(const gp_greenlet_t *record, gp_greenlet_t *before)
{
    gp_py_t *current = (gp_py_t *)(uintptr_t)gp_greenlet_current();
    if (current == NULL || gp_greenlet_api.is_main(current) ||
        (gp_step_here.task != NULL && gp_step_here.greenlet == current))
        return false;
    *before = gp_greenlet_record_here(current);
    gp_greenlet_t lent = *record;
    lent.greenlet = before->greenlet = current;
    gp_coro_rare(lent.coro)->object = (uintptr_t)current; // for a census while it waits
    greenlet_switch_run_as(&lent, GP_STEP_HAS_NOT_BEGUN);
    return true;
}

void gp_greenlet_give_back(const gp_greenlet_t *before)
{
    greenlet_switch_run_as(before, 0);
}
