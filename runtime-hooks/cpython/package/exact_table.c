// SPDX-License-Identifier: MIT
#include "exact_table.h"

#include <stdlib.h>

enum { FIRST_ROOM = 256 };

static size_t hash(const void *a, const void *b)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)a ^ (uint64_t)(uintptr_t)b * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;
    return (size_t)(mixed >> 32);
}

static size_t function_slot(const exact_table_t *table, const void *key)
{
    size_t slot = hash(key, NULL) & table->function_mask;
    while (table->functions[slot] != NULL && table->functions[slot]->key != key)
        slot = (slot + 1) & table->function_mask;
    return slot;
}

static size_t edge_slot(const exact_table_t *table, const exact_function_t *caller, const exact_function_t *callee)
{
    size_t slot = hash(caller, callee) & table->edge_mask;
    while (table->edges[slot] != NULL && (table->edges[slot]->caller != caller || table->edges[slot]->callee != callee))
        slot = (slot + 1) & table->edge_mask;
    return slot;
}

static bool grow_functions(exact_table_t *table)
{
    exact_table_t bigger = *table;
    size_t old = table->functions != NULL ? table->function_mask + 1 : 0, room = old > 0 ? old * 2 : FIRST_ROOM;
    bigger.functions = calloc(room, sizeof(*bigger.functions));
    if (bigger.functions == NULL)
        return false;
    bigger.function_mask = room - 1;
    for (size_t i = 0; i < old; i++)
        if (table->functions[i] != NULL)
            bigger.functions[function_slot(&bigger, table->functions[i]->key)] = table->functions[i];
    free(table->functions);
    *table = bigger;
    return true;
}

static bool grow_edges(exact_table_t *table)
{
    exact_table_t bigger = *table;
    size_t old = table->edges != NULL ? table->edge_mask + 1 : 0, room = old > 0 ? old * 2 : FIRST_ROOM;
    bigger.edges = calloc(room, sizeof(*bigger.edges));
    if (bigger.edges == NULL)
        return false;
    bigger.edge_mask = room - 1;
    for (size_t i = 0; i < old; i++)
        if (table->edges[i] != NULL)
            bigger.edges[edge_slot(&bigger, table->edges[i]->caller, table->edges[i]->callee)] = table->edges[i];
    free(table->edges);
    *table = bigger;
    return true;
}

// "<built-in method time.sleep>" or "<method 'append' of 'list' objects>": what cProfile calls it.
static PyObject *label_of(PyObject *function)
{
    PyCFunctionObject *builtin = (PyCFunctionObject *)function;
    const char *name = builtin->m_ml->ml_name;
    PyObject *label = NULL;
    if (builtin->m_self != NULL && !PyModule_Check(builtin->m_self)) {
        PyObject *method = PyObject_GetAttrString((PyObject *)Py_TYPE(builtin->m_self), name);
        label = method != NULL && !PyCFunction_Check(method) ? PyObject_Repr(method) : NULL;
        Py_XDECREF(method);
        PyErr_Clear();
    } else if (builtin->m_module != NULL && PyUnicode_Check(builtin->m_module)) {
        label = PyUnicode_FromFormat("<built-in method %U.%s>", builtin->m_module, name);
    }
    return label != NULL ? label : PyUnicode_FromFormat("<built-in method %s>", name);
}

// The package's own Python functions, and the methods of its types.
static bool is_own(PyObject *object)
{
    static const char *const files[] = {"/greenprof/__init__.py", "/greenprof/output.py", "/greenprof/callgrind.py"};
    if (!PyCode_Check(object)) {
        PyObject *self = PyCFunction_GET_SELF(object);
        if (strcmp(((PyCFunctionObject *)object)->m_ml->ml_name, "greenprof") == 0) // of the core's hooks
            return true;
        return self != NULL && strncmp(Py_TYPE(self)->tp_name, "_greenprof.", 11) == 0;
    }
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(((PyCodeObject *)object)->co_filename, &length);
    PyErr_Clear();
    for (size_t i = 0; name != NULL && i < sizeof(files) / sizeof(files[0]); i++) {
        size_t end = strlen(files[i]);
        if ((size_t)length >= end && strcmp(name + length - end, files[i]) == 0)
            return true;
    }
    return false;
}

static PyObject *describe(PyObject *object)
{
    if (PyCode_Check(object))
        return Py_NewRef(object);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *label = label_of(object);
    PyErr_Restore(type, value, traceback);
    return label;
}

// Describing a function may have let other threads run, who called it, too: the one that came first is returned.
static exact_function_t *enter(exact_table_t *table, exact_function_t *function)
{
    if (table->function_count * 2 >= table->function_mask && !grow_functions(table))
        return NULL;
    exact_function_t **slot = &table->functions[function_slot(table, function->key)];
    if (*slot == NULL) {
        *slot = function;
        table->function_count++;
    }
    return *slot;
}

exact_function_t *exact_table_function(exact_table_t *table, const void *key, PyObject *object)
{
    size_t slot = table->functions != NULL ? function_slot(table, key) : 0;
    if (table->functions != NULL && table->functions[slot] != NULL)
        return table->functions[slot];
    exact_function_t *function = calloc(1, sizeof(*function));
    if (function == NULL)
        return NULL;
    *function = (exact_function_t){.key = key, .object = describe(object), .hidden = is_own(object)};
    if (function->object == NULL)
        PyErr_Clear();
    exact_function_t *entered = function->object != NULL ? enter(table, function) : NULL;
    if (entered != function) {
        Py_XDECREF(function->object);
        free(function);
    }
    return entered;
}

exact_edge_t *exact_table_edge(exact_table_t *table, exact_function_t *caller, exact_function_t *callee)
{
    if (callee->last != NULL && callee->last->caller == caller)
        return callee->last;
    if (table->edge_count * 2 >= table->edge_mask && !grow_edges(table))
        return NULL;
    exact_edge_t **slot = &table->edges[edge_slot(table, caller, callee)];
    if (*slot == NULL) {
        *slot = calloc(1, sizeof(**slot));
        if (*slot == NULL)
            return NULL;
        (*slot)->caller = caller;
        (*slot)->callee = callee;
        table->edge_count++;
    }
    return callee->last = *slot;
}

void exact_table_free(exact_table_t *table)
{
    for (size_t i = 0; table->functions != NULL && i <= table->function_mask; i++) {
        if (table->functions[i] != NULL)
            Py_XDECREF(table->functions[i]->object);
        free(table->functions[i]);
    }
    for (size_t i = 0; table->edges != NULL && i <= table->edge_mask; i++)
        free(table->edges[i]);
    free(table->functions);
    free(table->edges);
}
