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
#include "interpreter/task_step.h"

// Hook the module _asyncio. Idempotent.
void gp_asyncio_hook(gp_py_t *module);

// The same, if it has been imported.
void gp_asyncio_look(void);

// The calling thread is about to use its current coroutine: make sure that it is known. The lock is not needed.
void gp_asyncio_enter(void);

// For tasks that are written in Python (python_tasks.h).

// Is it none of greenprof's affairs? Then the others are not called.
bool gp_asyncio_is_left(void);

// A task has been made by the current coroutine. Returns whether the task is new.
bool gp_asyncio_add(gp_py_t *task);

// A task has another name.
void gp_asyncio_named(gp_py_t *task);

// A task is over, or is being freed.
void gp_asyncio_forget(const void *task);

// The frame that is current, and those below it, are not the task's. outer: for the end of the step.
void gp_asyncio_begin(gp_task_step_t *outer, gp_py_t *task);
void gp_asyncio_end(const gp_task_step_t *outer, gp_py_t *task);
