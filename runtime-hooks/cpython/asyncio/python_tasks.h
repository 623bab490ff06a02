// SPDX-License-Identifier: MIT
// Tasks of asyncio that are written in Python: asyncio's own (asyncio.tasks._PyTask, which nest_asyncio puts in the
// place of Task) and those of others that tell asyncio which one is current, as its documentation asks them to.
//
// Model: such a task is registered once it is made, and says when it enters and leaves a step. These calls are hooked:
// functions of _asyncio up to 3.13, of asyncio.tasks from 3.14 on.
#pragma once

#include "interpreter/api.h"

// Hook what there is by now; the rest as a loop begins to run. module: _asyncio. Idempotent.
void gp_python_tasks_hook(gp_py_t *module);
