// SPDX-License-Identifier: MIT
#include "exact_type.h"

#include "exact.h"

typedef struct exact_object {
    PyObject_HEAD exact_t *exact;
} exact_object_t;

static int init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"scope", NULL};
    exact_object_t *me = (exact_object_t *)self;
    int scope = EXACT_REQUEST;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|i", names, &scope))
        return -1;
    exact_free(me->exact);
    me->exact = exact_new((enum exact_scope)scope);
    return me->exact != NULL ? 0 : -1;
}

static void dealloc(PyObject *self)
{
    exact_free(((exact_object_t *)self)->exact);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *start(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (exact_start(((exact_object_t *)self)->exact) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (exact_stop(((exact_object_t *)self)->exact) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    return exact_stats(((exact_object_t *)self)->exact);
}

static PyObject *total(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(exact_total_ns(((exact_object_t *)self)->exact));
}

static PyObject *was_taken(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(exact_was_taken(((exact_object_t *)self)->exact));
}

static PyMethodDef methods[] = {
    {"start", start, METH_NOARGS, "Start, or go on."},
    {"stop", stop, METH_NOARGS, "Stop; what is active counts as if it returned now."},
    {"stats", stats, METH_NOARGS, "What pstats reads."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"total_ns", total, NULL, "Time of all calls so far that no other call of the profile contains, in nanoseconds.",
     NULL},
    {"was_taken", was_taken, NULL, "Whether another tool took a thread away from it: calls are missing.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew}, {Py_tp_init, init},         {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},       {Py_tp_getset, properties}, {0, NULL},
};

PyType_Spec exact_spec = {
    .name = "_greenprof.Exact",
    .basicsize = sizeof(exact_object_t),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
