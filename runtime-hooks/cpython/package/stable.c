// SPDX-License-Identifier: MIT
#include "stable.h"

#include <stdint.h>

enum {
    LOCKED_HEAD_BYTES = 2 * sizeof(void *), // reference count, type
    HEAD_MAX_BYTES = 64,
    MODULE_GIL_SLOT = 4, // Py_mod_gil of 3.13; others refuse it
};

size_t stable_head_bytes;

int stable_begin(void)
{
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__basicsize__");
    size_t bytes = size != NULL ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    if (PyErr_Occurred() != NULL)
        return -1;
    if (bytes < LOCKED_HEAD_BYTES || bytes > HEAD_MAX_BYTES || bytes % sizeof(void *) != 0) {
        PyErr_Format(PyExc_ImportError, "greenprof does not know objects with a head of %zu bytes", bytes);
        return -1;
    }
    stable_head_bytes = bytes;
    return 0;
}

bool stable_is_free_threaded(void)
{
    return stable_head_bytes > LOCKED_HEAD_BYTES;
}

PyObject *stable_module(const char *name, PyMethodDef *functions, int (*execute)(PyObject *module))
{
    // The struct of the header begins with the head of another build: what is behind it goes behind the real one.
    static _Alignas(max_align_t) char room[HEAD_MAX_BYTES + sizeof(struct PyModuleDef)];
    static PyModuleDef_Slot slots[3];
    struct PyModuleDef *definition = (struct PyModuleDef *)(void *)(room + stable_head_bytes - LOCKED_HEAD_BYTES);
    slots[0] = (PyModuleDef_Slot){Py_mod_exec, (void *)(uintptr_t)execute};
    if (stable_is_free_threaded()) // without it Python takes the lock again, for the whole program
        slots[1] = (PyModuleDef_Slot){MODULE_GIL_SLOT, (void *)1};
    definition->m_name = name;
    definition->m_methods = functions;
    definition->m_slots = slots;
    if (definition->m_base.m_index == 0)
        Py_INCREF(room); // never freed
    return PyModuleDef_Init((struct PyModuleDef *)(void *)room);
}

PyObject *stable_type(const PyType_Spec *spec)
{
    PyType_Spec sized = *spec;
    sized.basicsize += (int)stable_head_bytes;
    return PyType_FromSpec(&sized);
}

void stable_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}
