// SPDX-License-Identifier: MIT
// Exact mode: every call of Python and built-in functions counted and timed, for each green thread by itself.
//
// Model: CPython calls back at each call and return. An exact profile keeps a shadow stack for every green thread in
// its scope; time that a green thread is switched away does not pass on its stack. Functions, and pairs of caller and
// callee, get calls, primitive calls, own and cumulative time, as cProfile defines them; what is active when the
// profile stops counts as if it returned then. Time is elapsed time while the green thread ran: its thread's waits are
// in it. Caller holds the interpreter lock everywhere.
#ifndef GP_CPYTHON_EXACT_H
#define GP_CPYTHON_EXACT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct exact exact_t;

enum exact_scope { EXACT_REQUEST, EXACT_THREAD, EXACT_PROCESS };

// NULL and a Python error on failure.
exact_t *exact_new(enum exact_scope scope);
void exact_free(exact_t *);

// 0, or -1 and a Python error.
int exact_start(exact_t *);
int exact_stop(exact_t *);

// What pstats reads: {(file, line, name): (primitive calls, calls, own, cumulative, callers)}. New reference.
PyObject *exact_stats(exact_t *);

// Has another tool taken a thread away from it, so that calls are missing?
int exact_was_taken(const exact_t *);

// Nanoseconds that passed on its stacks.
unsigned long long exact_total_ns(const exact_t *);

// What runs on the calling thread leaves the profiles of requests that it was born into. Nothing happens while none
// run.
void exact_detach(void);

// Let a thread that was just started be watched, where there is a profile of the process.
void exact_enter_thread(void);

#endif
