// SPDX-License-Identifier: MIT
// asyncio's tasks as coroutines.
//
// Model: a task runs in steps, each a call that its loop makes; between them it waits. The loop's own time, and that of
// other callbacks, is its thread's. A task has a record from when it is made until its coroutine is over (or it is
// freed), made by the coroutine that makes it. A task becomes ready when a loop's call_soon() is given its next step.
// The hooks are in the C functions behind _asyncio's Task, whatever loop calls them: the program sees no other object
// than without greenprof, and a step costs no Python.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include "interpreter/api.h"

// Hook the module _asyncio. Idempotent.
void gp_asyncio_hook(gp_py_t *module);

// The same, if it has been imported.
void gp_asyncio_look(void);

// The calling thread is about to use its current coroutine: make sure that it is known. The lock is not needed.
void gp_asyncio_enter(void);
