// SPDX-License-Identifier: MIT
// greenprof.coroutines(): the live coroutines as Python objects.
#pragma once

#include "stable.h"

// A list of tuples: id, name, state, seconds, spawner, trace, is_thread, stack; the stack is a list of (function, file,
// line), innermost first.
PyObject *census_list(PyObject *module, PyObject *unused);

// Write a census for `greenprof coroutines FILE`.
PyObject *census_dump(PyObject *module, PyObject *path);
