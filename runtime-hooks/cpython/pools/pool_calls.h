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

#include "interpreter/api.h"

// Replace an attribute of a module's object by a function that has the one before as its self.
//   binds: as a method of a class does.
// Returns whether that is done.
bool gp_pools_replace(const char *module_name, const char *holder_name, const char *attribute, gp_py_method_t *mine,
                      bool binds);

// Look which pools have been imported, if profiles run. Cost: four look-ups.
void gp_pools_look(void);
