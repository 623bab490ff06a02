// SPDX-License-Identifier: MIT
// Interpreters that the hooks know, for these and for the command.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "layout.h"

#define GP_CPYTHON_LOOP          "_PyEval_EvalFrameDefault"   // in every interpreter
#define GP_CPYTHON_FREE_THREADED "_Py_MergeZeroLocalRefcount" // in interpreters without the global lock

// The first bytes of an object by its name, of an interpreter in memory or in a file; NULL = it has fewer. For no
// bytes: anything but NULL where it has the name.
typedef const void *gp_cpython_find_t(void *where, const char *name, size_t bytes);

// The facts by which an interpreter's layout is found. They must stay in place as long as the layout is used.
gp_cpython_seen_t gp_cpython_see(gp_cpython_find_t *find, void *where);

// Is an interpreter seen as native code only?
//   text: set where it is: the interpreter, and the things not seen therefore.
bool gp_cpython_is_unknown(const gp_cpython_seen_t *seen, char *text, size_t size);

// The text of one that is not, for the reason `why`, which follows "it".
void gp_cpython_say_unknown(const gp_cpython_seen_t *seen, const char *why, char *text, size_t size);
