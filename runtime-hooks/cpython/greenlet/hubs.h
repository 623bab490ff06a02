// SPDX-License-Identifier: MIT
// When greenlets become ready, as far as the hubs of eventlet and gevent tell.
//
// Model: eventlet's hub takes a timer off its heap, or returns from epoll, and then runs callbacks that switch: who is
// switched to from the hub meanwhile became ready when that timer was due (spawn and what wakes waiters are timers that
// are due at once), or when epoll returned. gevent is told which greenlet to switch to with loop.run_callback(), or
// when a timer is due. What is hooked are the C functions behind these calls. Who waits for an event, a lock or a file
// in gevent is woken by code that does not say for whom it was called: nobody says when those became ready.
//
// Caller holds the interpreter lock everywhere.
#ifndef GP_CPYTHON_HUBS_H
#define GP_CPYTHON_HUBS_H

#include "greenlet/greenlet_map.h"
#include "interpreter/api.h"

// Look whether a hub has been imported. Cost: two look-ups until both have been.
void gp_hub_look(void);

// Is a greenlet that is made with these arguments eventlet's hub, or gevent's? A hub works for all, whoever was the
// first to need it.
bool gp_hub_is_one(gp_py_t *type, gp_py_t *args);

// The calling thread is about to switch from a greenlet to a coroutine.
//   from: NULL = not known.
void gp_hub_before_switch(const void *from, prof_coro_t *to);

#endif
