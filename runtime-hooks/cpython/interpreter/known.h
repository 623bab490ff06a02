// SPDX-License-Identifier: MIT
// Which interpreters the hooks know: for these, and for the command.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Is an interpreter one that is seen as native code only?
//   version:          PY_VERSION_HEX; 0 = it does not say, which those before 3.11 do not.
//   is_free_threaded: it is built without the global lock: its objects have another head.
//   text:             set where it is: what it is, and what is not seen therefore.
bool gp_cpython_is_unknown(unsigned long version, bool is_free_threaded, char *text, size_t size);

#define GP_CPYTHON_LOOP          "_PyEval_EvalFrameDefault"   // what every interpreter has
#define GP_CPYTHON_FREE_THREADED "_Py_MergeZeroLocalRefcount" // what those without the global lock have
