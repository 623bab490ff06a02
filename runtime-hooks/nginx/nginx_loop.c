// SPDX-License-Identifier: MIT
// When a worker's loop looks for events: ngx_event_find_timer() is called right before each look, ngx_time_update()
// right after it. A reply that came while a request kept the worker is found by a late look.
//
// Source: nginx 1.22, ngx_event.c (ngx_process_events_and_timers), ngx_epoll_module.c (ngx_epoll_process_events).
#include "nginx/nginx_loop.h"
#include "greenprof/coro.h"
#include "patch/hooks.h"
#include "signal/ledger_edges.h"
#include "signal/sleeps.h"

typedef uintptr_t call_t(void);

static struct { // of the worker's one thread
    uint64_t ticks;
    uint32_t epoch;
    bool is_looking, may_be_late;
    uint64_t sleeps;
} look;

GP_ENTRY_CODE call_t gp_patch_ngx_event_find_timer, gp_patch_ngx_time_update;
void *gp_patch_real_ngx_event_find_timer, *gp_patch_real_ngx_time_update;

uintptr_t gp_patch_ngx_event_find_timer(void)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_thread_self != NULL) {
        look.may_be_late = look.ticks != 0 &&
                           look.epoch == atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed) &&
                           gp_ticks() - look.ticks >= gp_ledger_edge_load(&gp_ledger_edge_hog_ticks);
        look.sleeps = look.may_be_late ? gp_sleeps() : 0;
        look.is_looking = true;
    }
    return GP_PATCHED(call_t, ngx_event_find_timer)();
}

uintptr_t gp_patch_ngx_time_update(void)
{
    if (look.is_looking && gp_thread_self != NULL) {
        uint64_t now = gp_ticks();
        bool is_late = look.may_be_late && gp_sleeps() == look.sleeps;
        gp_ledger_edge_looked(gp_thread_self, is_late ? look.ticks : now, now);
        look.ticks = now;
        look.epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    }
    look.is_looking = false;
    return GP_PATCHED(call_t, ngx_time_update)();
}

void gp_nginx_woken(prof_coro_t *coro)
{
    prof_coro_ready(coro);
    gp_ledger_edge_ready_by_look(coro);
}
