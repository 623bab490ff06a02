// SPDX-License-Identifier: MIT
// Contexts in headers (greenprof/trace.h) for Python.
#pragma once

#include "stable.h"

// context_read([(name, value), ...]): a tuple trace, parent_id, parent_uuid, tracestate, flags, is_refused; None: there
// is no context, refused or not.
PyObject *context_read(PyObject *module, PyObject *headers);

// context_write(format, context or None): a dict of headers; empty where there is no trace, or no key to sign with. The
// context is a tuple as above; None: that of the caller.
PyObject *context_write(PyObject *module, PyObject *args);

// context_counts(): a dict.
PyObject *context_counts(PyObject *module, PyObject *unused);

// set_hmac_keys(text), set_policy(text).
PyObject *context_keys(PyObject *module, PyObject *keys);
PyObject *context_policy(PyObject *module, PyObject *policy);

// The flags, as module constants CONTEXT_*.
int context_constants(PyObject *module);
