// SPDX-License-Identifier: MIT
// Spans (greenprof/trace.h) for Python.
#pragma once

#include "stable.h"

// _greenprof.Span(kind, name, /, *, trace=None, parent=None, remote_parent=None, start_unix_ns=None, profile=False,
// **fields): what greenprof.span derives from.
extern PyType_Spec span_spec;

// The id of the span that is open on the calling coroutine, or None.
PyObject *spans_current(PyObject *module, PyObject *unused);

// prof_coro_idle().
PyObject *coro_idle(PyObject *module, PyObject *unused);
