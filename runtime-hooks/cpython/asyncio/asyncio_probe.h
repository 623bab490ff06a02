// SPDX-License-Identifier: MIT
// The look of a step of asyncio's C tasks, from outside: found with a task of our own, which no other code sees.
#pragma once

#include "interpreter/api.h"

typedef struct gp_asyncio_steps {
    gp_py_t *step_type; // of the object that is called for a task's first step, and for one after a yield
    gp_py_t *builtin_type;
    gp_py_method_t
        *wakeup; // of the built-in function that is called when the awaited thing is done; its self is the task
} gp_asyncio_steps_t;

enum { GP_ASYNCIO_STEP_TASK = 16, GP_PY_BUILTIN_SELF = 24 }; // where those have the task

// Returns whether it was found.
bool gp_asyncio_probe(gp_py_t *module, gp_asyncio_steps_t *steps);
