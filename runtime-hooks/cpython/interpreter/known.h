// SPDX-License-Identifier: MIT
// Which interpreters greenprof can read, by what they have in memory or in a file: for the hooks, and for the command.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GP_CPYTHON_LOOP "_PyEval_EvalFrameDefault" // what every interpreter has

// The first bytes of an object's variable, at least as many as are asked for; NULL = it has none.
typedef const void *gp_cpython_variable_t(const void *object, const char *name, size_t bytes);

// Is the interpreter in an object one that is seen as native code only? It may turn out to be that once it runs.
//   text: set where it is: what it is, and why.
// Threads: one at a time. Signals: not safe.
bool gp_cpython_is_unknown(gp_cpython_variable_t *variable, const void *object, char *text, size_t size);

// "CPython 3.14.1 is built without the global interpreter lock: native frames only".
//   version: PY_VERSION_HEX; why: without its subject.
// Returns what snprintf() does.
int gp_cpython_sentence(unsigned long version, const char *why, char *text, size_t size);
