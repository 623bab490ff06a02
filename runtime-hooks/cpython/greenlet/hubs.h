// SPDX-License-Identifier: MIT
// Moments at which greenlets become ready, as far as the hubs of eventlet and gevent tell.
//
// Model: eventlet's hub takes a timer off its heap, or returns from epoll, and then runs callbacks that switch. A
// greenlet it switches to meanwhile became ready when the timer was due (spawn and wake-ups are timers due at once), or
// when epoll returned. gevent learns which greenlet to switch to by loop.run_callback(), or when a timer is due. The C
// functions behind these calls are hooked. A greenlet that waits for an event, a lock or a file in gevent is woken by
// code without its name: the moment it became ready is unknown.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include "greenlet/greenlet_map.h"
#include "interpreter/api.h"

// Look whether a hub has been imported. Cost: two look-ups until both have been.
void gp_hub_look(void);

// Is a greenlet that is made with these arguments eventlet's hub, or gevent's? A hub works for all greenlets, whichever
// caused its creation.
bool gp_hub_is_one(gp_py_t *type, gp_py_t *args);

// Does eventlet's hub run on the calling thread, which has one?
bool gp_hub_runs(void);

// A thread's state: eventlet's hub, and since when the greenlets it switches to are ready.
typedef struct gp_hub_here {
    const void *hub;
    uint64_t ready_ticks;
    bool polls; // by epoll; else a timer's moment counts for one greenlet only
} gp_hub_here_t;

extern __thread gp_hub_here_t gp_hub_here __attribute__((tls_model("initial-exec")));

// The calling thread is about to switch from a greenlet to a coroutine.
//   from: NULL = not known.
static inline void gp_hub_before_switch(const void *from, prof_coro_t *to)
{
    if (from == NULL || from != gp_hub_here.hub || to == NULL)
        return;
    uint64_t ready = atomic_load_explicit(&to->ready_ticks, memory_order_relaxed);
    if (ready == 0 || ready == to->birth_ticks)
        atomic_store_explicit(&to->ready_ticks, gp_hub_here.ready_ticks, memory_order_relaxed);
    if (!gp_hub_here.polls)
        gp_hub_here.ready_ticks = 0;
}
