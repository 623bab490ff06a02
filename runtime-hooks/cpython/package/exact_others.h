// SPDX-License-Identifier: MIT
// Other profilers of the same threads: CPython calls one function a thread (before 3.12 that is cProfile's as well).
//
// Model: who profiled a thread before an exact profile came is called by it, and gets the thread back after it. While
// exact profiles run, sys.setprofile() and cProfile's enable() and disable() find the thread as if they were alone;
// what they leave there is called from then on. A tool that does not use these takes the thread away; the profile says
// so when it stops. Caller holds the interpreter lock everywhere.
#ifndef GP_CPYTHON_EXACT_OTHERS_H
#define GP_CPYTHON_EXACT_OTHERS_H

#include <stdbool.h>

#include "exact.h"

typedef struct exact_other {
    struct exact_other *next;
    PyThreadState *thread;
    Py_tracefunc call;
    PyObject *argument;
} exact_other_t;

extern exact_other_t *exact_others; // mostly none

// Wrap the calls named above. Idempotent. `mine` is the function of exact profiles.
void exact_others_watch(Py_tracefunc mine);

// Have exact profiles called on the calling thread, in front of whoever is there. Returns 0, or -1 and a Python error.
int exact_others_precede(void);

// Give back a thread that exact profiles are called on. Returns 0, or -1 and a Python error.
int exact_others_give_back(PyThreadState *thread);

// Call the other one of the calling thread, if there is one. Returns what it does.
int exact_others_call(PyFrameObject *frame, int what, PyObject *argument);

#endif
