// SPDX-License-Identifier: MIT
// Python.h for one build that serves every CPython from 3.11 on, with the global lock or without: functions of the
// stable ABI alone. An object's head is twice as long without the lock, so nothing here looks into one, or knows its
// length before Python says it (stable_begin()). Objects of our types are that head, and behind it a struct. Source:
// PEP 384, PEP 703; docs.python.org/3/c-api/stable.html.
#pragma once

#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>

// Learn how long a head is. Once, before all else. Returns 0, or -1 and a Python error.
int stable_begin(void);

// The length of an object's head in bytes.
extern size_t stable_head_bytes;

// Whether objects have the head of a Python without the global lock.
bool stable_is_free_threaded(void);

// The result of PyInit_NAME(): a module with these functions, which is then set up by `execute`. For one module, as its
// definition is static. Returns NULL and a Python error.
PyObject *stable_module(const char *name, PyMethodDef *functions, int (*execute)(PyObject *module));

// A type; the size in its spec is that of the struct. New reference, or NULL and a Python error.
PyObject *stable_type(const PyType_Spec *spec);

// The last step of a tp_dealloc.
void stable_free(PyObject *self);

static inline void *stable_struct(PyObject *self)
{
    return (char *)self + stable_head_bytes;
}

// Borrowed: the object has it.
static inline PyTypeObject *stable_type_of(PyObject *object)
{
    PyObject *type = PyObject_Type(object);
    Py_DecRef(type);
    return (PyTypeObject *)type;
}

static inline bool stable_has(PyObject *object, unsigned long flag)
{
    return (PyType_GetFlags(stable_type_of(object)) & flag) != 0;
}

// In place of the header's own, which look into objects.
#undef Py_TYPE
#undef Py_INCREF
#undef Py_DECREF
#undef Py_XINCREF
#undef Py_XDECREF
#undef Py_NewRef
#undef PyUnicode_Check
#undef PyLong_Check
#undef PyTuple_Check
#undef PyType_Check
#undef PyExceptionInstance_Check
#define Py_TYPE(object)                   stable_type_of((PyObject *)(object))
#define Py_INCREF(object)                 Py_IncRef((PyObject *)(object))
#define Py_DECREF(object)                 Py_DecRef((PyObject *)(object))
#define Py_XINCREF(object)                Py_IncRef((PyObject *)(object))
#define Py_XDECREF(object)                Py_DecRef((PyObject *)(object))
#define PyUnicode_Check(object)           stable_has(object, Py_TPFLAGS_UNICODE_SUBCLASS)
#define PyLong_Check(object)              stable_has(object, Py_TPFLAGS_LONG_SUBCLASS)
#define PyTuple_Check(object)             stable_has(object, Py_TPFLAGS_TUPLE_SUBCLASS)
#define PyType_Check(object)              stable_has(object, Py_TPFLAGS_TYPE_SUBCLASS)
#define PyExceptionInstance_Check(object) stable_has(object, Py_TPFLAGS_BASE_EXC_SUBCLASS)
