// SPDX-License-Identifier: MIT
// Tasks of asyncio in Python: asyncio's own (asyncio.tasks._PyTask, which nest_asyncio puts in the place of Task), and
// tasks of other libraries, as asyncio's documentation describes them.
//
// Model: such a task is registered once it is made, and says when it enters and leaves a step. These calls are hooked:
// functions of _asyncio up to 3.13, of asyncio.tasks from 3.14 on.
#pragma once

#include "interpreter/api.h"

// Hook what there is by now; the rest as a loop begins to run. module: _asyncio. Idempotent.
void gp_python_tasks_hook(gp_py_t *module);
