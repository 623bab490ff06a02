// SPDX-License-Identifier: MIT
// The Python type over exact.h.
#ifndef GP_CPYTHON_EXACT_TYPE_H
#define GP_CPYTHON_EXACT_TYPE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec exact_spec;

#endif
