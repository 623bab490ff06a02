// SPDX-License-Identifier: MIT
#include "contexts.h"

#include <errno.h>
#include <string.h>

#include "greenprof/trace.h"

enum { HEADERS_MAX = 64 };

// The text of a str, as long as the str lives; "", which every reader refuses, for one that cannot be in a header.
static const char *contexts_text_of(PyObject *object)
{
    Py_ssize_t len = 0;
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &len) : NULL;
    PyErr_Clear();
    return text != NULL && strlen(text) == (size_t)len ? text : "";
}

static PyObject *contexts_tuple_of(const prof_context_t *context, int is_refused)
{
    char trace[PROF_TRACE_HEX_SIZE];
    prof_trace_to_hex(&context->trace, trace);
    return Py_BuildValue("(sKssIO)", trace, (unsigned long long)context->parent_id, context->parent_uuid,
                         context->tracestate, (unsigned)context->flags, is_refused ? Py_True : Py_False);
}

PyObject *context_read(PyObject *module, PyObject *list)
{
    (void)module;
    static const prof_trace_id_t none;
    prof_header_t headers[HEADERS_MAX];
    size_t count = 0;
    PyObject *items = PySequence_Tuple(list);
    if (items == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(items) && count < HEADERS_MAX; i++) {
        PyObject *pair = PyTuple_GetItem(items, i);
        if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2)
            headers[count++] =
                (prof_header_t){contexts_text_of(PyTuple_GetItem(pair, 0)), contexts_text_of(PyTuple_GetItem(pair, 1))};
    }
    prof_context_t context = PROF_CONTEXT_INIT;
    int error = prof_context_read(headers, count, &context);
    Py_DECREF(items);
    if (memcmp(&context.trace, &none, sizeof(none)) == 0)
        Py_RETURN_NONE;
    return contexts_tuple_of(&context, error != 0);
}

// --- writing

static int contexts_copy(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len < size)
        memcpy(to, text, len + 1);
    return len < size ? 0 : -EINVAL;
}

// Returns 0, -EINVAL, or -1 and a Python error.
static int contexts_context_of(PyObject *tuple, prof_context_t *context)
{
    const char *trace, *uuid, *tracestate;
    unsigned long long parent;
    unsigned flags;
    int is_refused;
    if (!PyArg_ParseTuple(tuple, "sKssIp", &trace, &parent, &uuid, &tracestate, &flags, &is_refused))
        return -1;
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    context->parent_id = parent;
    context->flags = flags;
    int error = prof_trace_parse(trace, &context->trace);
    if (error == 0)
        error = contexts_copy(context->parent_uuid, sizeof(context->parent_uuid), uuid);
    return error == 0 ? contexts_copy(context->tracestate, sizeof(context->tracestate), tracestate) : error;
}

static PyObject *contexts_dict_of(char *lines)
{
    PyObject *headers = PyDict_New();
    for (char *line = lines, *colon, *end; headers != NULL && (colon = strchr(line, ':')) != NULL; line = end + 2) {
        end = colon + strcspn(colon, "\r"); // each line has one, and "\n" behind it
        *end = *colon = '\0';
        PyObject *value = PyUnicode_FromString(colon + 2);
        if (value == NULL || PyDict_SetItemString(headers, line, value) != 0)
            Py_CLEAR(headers);
        Py_XDECREF(value);
    }
    return headers;
}

PyObject *context_write(PyObject *module, PyObject *args)
{
    (void)module;
    const char *format;
    PyObject *tuple;
    char lines[PROF_CONTEXT_TEXT_SIZE] = "";
    prof_context_t context;
    if (!PyArg_ParseTuple(args, "sO", &format, &tuple))
        return NULL;
    int error = tuple != Py_None ? contexts_context_of(tuple, &context) : 0;
    if (error == -1)
        return NULL;
    ssize_t len =
        error == 0 ? prof_context_write(format, tuple != Py_None ? &context : NULL, lines, sizeof(lines)) : error;
    if (len >= 0 || len == -ENOENT || len == -ENOKEY)
        return contexts_dict_of(lines);
    return PyErr_Format(PyExc_ValueError,
                        "format=%s: it can be w3c, osprofiler, greenprof; or the context is malformed", format);
}

PyObject *context_counts(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    prof_context_counts_t counts = {.size = sizeof(counts)};
    prof_context_counts(&counts);
    return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "accepted", (unsigned long long)counts.accepted, "signed",
                         (unsigned long long)counts.is_signed, "malformed", (unsigned long long)counts.malformed,
                         "oversized", (unsigned long long)counts.oversized, "signature",
                         (unsigned long long)counts.signature, "late", (unsigned long long)counts.late, "replayed",
                         (unsigned long long)counts.replayed, "full", (unsigned long long)counts.full);
}

// --- what may

// No error shows a key.
PyObject *context_keys(PyObject *module, PyObject *keys)
{
    (void)module;
    const char *text = PyUnicode_Check(keys) ? PyUnicode_AsUTF8AndSize(keys, NULL) : NULL;
    if (text == NULL && keys != Py_None) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "keys: a str with commas, or None");
        return NULL;
    }
    int error = prof_hmac_keys(text);
    if (error == -E2BIG) {
        PyErr_SetString(PyExc_ValueError, "more than 16 keys, or one of more than 256 bytes");
        return NULL;
    }
    if (error != 0) {
        errno = -error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

PyObject *context_policy(PyObject *module, PyObject *policy)
{
    (void)module;
    if (prof_policy(contexts_text_of(policy)) != 0)
        return PyErr_Format(PyExc_ValueError, "policy=%R: it can be always, never, signed, 1/N, slower=20ms", policy);
    Py_RETURN_NONE;
}

int context_constants(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        {"CONTEXT_SAMPLED", PROF_CONTEXT_SAMPLED},
        {"CONTEXT_SIGNED", PROF_CONTEXT_SIGNED},
        {"CONTEXT_PROFILE", PROF_CONTEXT_PROFILE},
    };
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) != 0)
            return -1;
    return 0;
}
