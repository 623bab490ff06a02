// SPDX-License-Identifier: MIT
// Spans (greenprof/trace.h) for Python.
#pragma once

#include "stable.h"

// _greenprof.Span(kind, name, /, *, trace=None, parent=None, remote_parent=None, start_unix_ns=None, profile=False,
// **fields): what greenprof.span derives from.
extern PyType_Spec span_spec;

// The id of the span that is open on the calling coroutine, or None.
PyObject *spans_current(PyObject *module, PyObject *unused);

// client_is_on(name), may_call(name, kind): core/trace/client_switch.h.
PyObject *spans_client_is_on(PyObject *module, PyObject *name);
PyObject *spans_may_call(PyObject *module, PyObject *const *args, Py_ssize_t count);

// prof_coro_idle().
PyObject *coro_idle(PyObject *module, PyObject *unused);
