// SPDX-License-Identifier: MIT
#include "coro_views.h"

#include <errno.h>
#include <string.h>

#include "greenprof/coro.h"
#include "greenprof/trace.h"
#include "interface.h"
#include "model/kinds.h"

static const char *const states[] = {
    [GP_CENSUS_UNKNOWN] = "unknown", [GP_CENSUS_RUNNING] = "running", [GP_CENSUS_BLOCKED] = "blocked",
    [GP_CENSUS_READY] = "ready",     [GP_CENSUS_PARKED] = "parked",   [GP_CENSUS_WAITING] = "waiting",
    [GP_CENSUS_NEW] = "new",         [GP_CENSUS_AWAY] = "away",       [GP_CENSUS_IDLE] = "idle",
};

static PyObject *coro_views_stack_of(const gp_coro_view_t *view)
{
    PyObject *stack = PyList_New((Py_ssize_t)view->depth);
    for (size_t i = 0; stack != NULL && i < view->depth; i++) {
        PyObject *frame = Py_BuildValue("(ssI)", view->frames[i].function, view->frames[i].file, view->frames[i].line);
        if (frame == NULL)
            Py_CLEAR(stack);
        else
            PyList_SetItem(stack, (Py_ssize_t)i, frame);
    }
    return stack;
}

static PyObject *coro_views_trace_of(const gp_coro_view_t *view)
{
    if (view->trace[0] == 0 && view->trace[1] == 0)
        Py_RETURN_NONE;
    prof_trace_id_t id;
    char text[PROF_TRACE_HEX_SIZE];
    memcpy(id.bytes, view->trace, sizeof(id.bytes));
    prof_trace_to_hex(&id, text);
    return PyUnicode_FromString(text);
}

static PyObject *coro_views_view_of(const gp_coro_view_t *view)
{
    PyObject *name = PyUnicode_DecodeUTF8(view->name, (Py_ssize_t)strlen(view->name), "replace"); // cut at 47 bytes
    PyObject *trace = coro_views_trace_of(view), *stack = coro_views_stack_of(view), *tuple = NULL;
    PyObject *spawner = view->parent_id != 0 ? PyLong_FromUnsignedLongLong(view->parent_id) : Py_NewRef(Py_None);
    if (name != NULL && trace != NULL && stack != NULL && spawner != NULL)
        tuple =
            Py_BuildValue("(KOsdOOOO)", (unsigned long long)view->id, name, states[view->state],
                          (double)view->state_ns / 1e9, spawner, trace, view->is_thread ? Py_True : Py_False, stack);
    Py_XDECREF(name);
    Py_XDECREF(trace);
    Py_XDECREF(stack);
    Py_XDECREF(spawner);
    return tuple;
}

PyObject *census_list(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const gp_core_interface_t *core = prof_core_interface();
    size_t count;
    gp_coro_view_t *views = core->language->views(&count);
    if (views == NULL)
        return PyErr_NoMemory();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *view = coro_views_view_of(&views[i]);
        if (view == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, view);
    }
    core->language->views_free(views, count);
    return list;
}

PyObject *census_dump(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes;
    int error;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *name = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS
    error = prof_coro_dump(name);
    Py_END_ALLOW_THREADS
    if (error < 0) {
        errno = -error;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    Py_DECREF(bytes);
    if (error < 0)
        return NULL;
    Py_RETURN_NONE;
}
