// SPDX-License-Identifier: MIT
// Calls that a coroutine hands to another thread: concurrent.futures (and with it asyncio.to_thread and
// run_in_executor), futurist, eventlet.tpool, gevent's thread pool.
//
// Model: where a pool takes a function to call, it is given another one, which makes the call as a coroutine of its
// own: created at hand-over as a child of the submitting coroutine, with its profiles and trace, and ready from then
// on; it runs on the pool's thread for as long as the call takes. The thread's other work belongs to no request: a
// pool's green thread leaves the request that caused its creation. Pools are looked for once profiles run, and when
// modules are imported and threads are started from then on; while none run, a call is handed over unchanged.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "greenlet/greenlet_map.h"
#include "interpreter/api.h"

typedef struct gp_handing { // how a call is handed over
    uint32_t pool;          // its number (collect/pools.h); 0 = none
    gp_py_t *work;          // the function that it is about; NULL = the one that is called
    const char *name;       // of its coroutine; NULL = that of its function
    bool is_thread;         // it is what a thread is started for: a span of its own
    bool is_plain;          // it has none: the call is made as it is, and ends what it gets of queues
} gp_handing_t;

// The function to be called, once, instead of `function`. New reference, never NULL: where it cannot be, itself.
gp_py_t *gp_pools_hand_over(gp_py_t *function, const gp_handing_t *handing);

// Does the calling thread work for a request that is recorded, or within a profile?
bool gp_pools_works_for_a_request(void);

// An object that stands for a call. New reference, NULL when memory is short.
gp_py_t *gp_pools_token(void);

// Is what runs (gp_greenlet_running()) a call that was handed over? Else it is a greenlet, or a task.
bool gp_pools_is_call(const gp_greenlet_t *running);

// Replace an attribute of a module's object by a function that has the one before as its self.
//   binds: as a method of a class does.
// Returns whether that is done.
bool gp_pools_replace(const char *module_name, const char *holder_name, const char *attribute, gp_py_method_t *mine,
                      bool binds);

// Look which pools have been imported, if profiles run. Cost: four look-ups.
void gp_pools_look(void);
