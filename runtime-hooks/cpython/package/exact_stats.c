// SPDX-License-Identifier: MIT
// An exact profile as pstats wants it. Source: Lib/pstats.py, Lib/cProfile.py.
#include "exact_profile.h"
#include "exact_stack.h"

// (file, first line, name)
static PyObject *function_key(const exact_function_t *function)
{
    if (!PyCode_Check(function->object))
        return Py_BuildValue("(siO)", "~", 0, function->object);
    PyCodeObject *code = (PyCodeObject *)function->object;
    return Py_BuildValue("(OiO)", code->co_filename, code->co_firstlineno, code->co_qualname);
}

// Add two tuples of four numbers, or take the second: code objects of the same place are one function.
static PyObject *sum(PyObject *before, PyObject *now)
{
    if (before == NULL)
        return Py_NewRef(now);
    PyObject *total = PyTuple_New(4);
    for (Py_ssize_t i = 0; total != NULL && i < 4; i++) {
        PyObject *item = PyNumber_Add(PyTuple_GET_ITEM(before, i), PyTuple_GET_ITEM(now, i));
        if (item == NULL)
            Py_CLEAR(total);
        else
            PyTuple_SET_ITEM(total, i, item);
    }
    return total;
}

static int add_to(PyObject *dict, PyObject *key, PyObject *now)
{
    PyObject *total = key != NULL && now != NULL ? sum(PyDict_GetItemWithError(dict, key), now) : NULL;
    int error = total != NULL ? PyDict_SetItem(dict, key, total) : -1;
    Py_XDECREF(total);
    return error;
}

static PyObject *numbers(const exact_counts_t *counts, double scale, int calls_first)
{
    unsigned long long calls = counts->calls, primitive = counts->primitive_calls;
    return Py_BuildValue("(KKdd)", calls_first ? calls : primitive, calls_first ? primitive : calls,
                         (double)counts->own_ticks * scale, (double)counts->total_ticks * scale);
}

static int add_functions(const exact_table_t *table, double scale, PyObject *functions, PyObject *callers)
{
    for (size_t i = 0; table->functions != NULL && i <= table->function_mask; i++) {
        if (table->functions[i] == NULL || table->functions[i]->hidden)
            continue;
        PyObject *key = function_key(table->functions[i]), *now = numbers(&table->functions[i]->counts, scale, 0);
        int error = add_to(functions, key, now);
        if (error == 0 && PyDict_GetItemWithError(callers, key) == NULL) {
            PyObject *none = PyDict_New();
            error = none != NULL ? PyDict_SetItem(callers, key, none) : -1;
            Py_XDECREF(none);
        }
        Py_XDECREF(key);
        Py_XDECREF(now);
        if (error < 0)
            return -1;
    }
    return 0;
}

static int add_edges(const exact_table_t *table, double scale, PyObject *callers)
{
    for (size_t i = 0; table->edges != NULL && i <= table->edge_mask; i++) {
        const exact_edge_t *edge = table->edges[i];
        if (edge == NULL)
            continue;
        PyObject *caller = function_key(edge->caller), *callee = function_key(edge->callee);
        PyObject *now = numbers(&edge->counts, scale, 1); // of callers, pstats wants calls before primitive calls
        PyObject *of_callee = callee != NULL ? PyDict_GetItemWithError(callers, callee) : NULL;
        int error = of_callee != NULL ? add_to(of_callee, caller, now) : -1;
        Py_XDECREF(caller);
        Py_XDECREF(callee);
        Py_XDECREF(now);
        if (error < 0)
            return -1;
    }
    return 0;
}

static PyObject *combine(PyObject *functions, PyObject *callers)
{
    PyObject *stats = PyDict_New(), *key, *value;
    for (Py_ssize_t at = 0; stats != NULL && PyDict_Next(functions, &at, &key, &value);) {
        PyObject *row =
            Py_BuildValue("(OOOOO)", PyTuple_GET_ITEM(value, 0), PyTuple_GET_ITEM(value, 1), PyTuple_GET_ITEM(value, 2),
                          PyTuple_GET_ITEM(value, 3), PyDict_GetItemWithError(callers, key));
        if (row == NULL || PyDict_SetItem(stats, key, row) < 0)
            Py_CLEAR(stats);
        Py_XDECREF(row);
    }
    return stats;
}

PyObject *exact_stats(exact_t *profile)
{
    double scale = exact_seconds_per_tick();
    int collects = PyGC_Disable(); // a finalizer would call functions, and the table may grow while it is read
    PyObject *functions = PyDict_New(), *callers = PyDict_New(), *stats = NULL;
    if (functions != NULL && callers != NULL && add_functions(&profile->table, scale, functions, callers) == 0 &&
        add_edges(&profile->table, scale, callers) == 0)
        stats = combine(functions, callers);
    Py_XDECREF(functions);
    Py_XDECREF(callers);
    if (collects)
        PyGC_Enable();
    return stats;
}
