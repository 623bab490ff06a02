// SPDX-License-Identifier: MIT
#include "spans.h"

#include <stdbool.h>
#include <string.h>

#include "greenprof/coro.h"
#include "greenprof/trace.h"
#include "interface.h"
#include "model/span_kind.h"

typedef struct span {
    prof_span_t *span; // NULL = it is not open, or not recorded
    bool is_open, has_trace;
    prof_trace_id_t trace;
    prof_span_options_t options; // but the trace
    prof_span_kind_t kind;
    unsigned long long id; // of the last one that was begun; 0 = not recorded
    PyObject *name;        // bytes
    PyObject *args;        // as they were given
    PyObject *fields;      // dict: what is left of the keywords; NULL = none
    PyObject *keywords;    // as they were given, or NULL
} span_t;

// --- texts

// The UTF-8 of a str, or of str(object): new reference to bytes.
static PyObject *spans_bytes_of(PyObject *object)
{
    PyObject *text = PyObject_Str(object);
    PyObject *bytes = text != NULL ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
    Py_XDECREF(text);
    return bytes;
}

// The name of a class, with that of its module.
static PyObject *spans_name_of_type(PyTypeObject *type)
{
    PyObject *name = PyType_GetQualName(type), *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    PyObject *text = NULL;
    if (name != NULL && module != NULL && PyUnicode_Check(module) &&
        PyUnicode_CompareWithASCIIString(module, "builtins") != 0)
        text = PyUnicode_FromFormat("%U.%U", module, name);
    else if (name != NULL)
        text = Py_NewRef(name);
    if (text != NULL)
        PyErr_Clear(); // a class need not say of which module it is
    Py_XDECREF(module);
    Py_XDECREF(name);
    return text;
}

// --- construction

static int package_spans_kind_of(PyObject *text, prof_span_kind_t *kind)
{
    const char *utf8 = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    for (uint32_t i = PROF_SPAN_REQUEST; utf8 != NULL && i < GP_SPAN_KIND_COUNT; i++) {
        if (strcmp(utf8, gp_span_kind_text(i)) == 0) {
            *kind = (prof_span_kind_t)i;
            return 0;
        }
    }
#define WORD(id, text) ", " text
    static const char words[] = GP_SPAN_KINDS(WORD);
#undef WORD
    PyErr_Format(PyExc_ValueError, "kind=%R: it can be %s", text, words + 2);
    return -1;
}

static int spans_read_trace(span_t *me, PyObject *value)
{
    const char *utf8 = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (utf8 == NULL || prof_trace_parse(utf8, &me->trace) != 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "no trace id: %R", value);
        return -1;
    }
    me->has_trace = true;
    return 0;
}

static int spans_read_number(PyObject *value, uint64_t *number)
{
    unsigned long long all = PyLong_Check(value) ? PyLong_AsUnsignedLongLong(value) : (unsigned long long)-1;
    if (all == (unsigned long long)-1 && (PyErr_Occurred() || !PyLong_Check(value))) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%R: it is a whole number of 64 bits", value);
        return -1;
    }
    *number = all;
    return 0;
}

// Read a keyword that is no field. Returns 1: it is a field; -1 and an error.
static int spans_read_keyword(span_t *me, PyObject *key, PyObject *value)
{
    bool is_remote = PyUnicode_CompareWithASCIIString(key, "remote_parent") == 0;
    int is_true;
    if (PyUnicode_CompareWithASCIIString(key, "trace") == 0)
        return value != Py_None ? spans_read_trace(me, value) : 0;
    if (is_remote || PyUnicode_CompareWithASCIIString(key, "parent") == 0) {
        if (value != Py_None && is_remote)
            me->options.flags |= PROF_SPAN_REMOTE_PARENT;
        return value != Py_None ? spans_read_number(value, &me->options.parent_id) : 0;
    }
    if (PyUnicode_CompareWithASCIIString(key, "start_unix_ns") == 0)
        return value != Py_None ? spans_read_number(value, &me->options.start_unix_ns) : 0;
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"stack", PROF_SPAN_STACK}, {"profile", PROF_SPAN_PROFILE}, {"client_call", PROF_SPAN_CLIENT}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (PyUnicode_CompareWithASCIIString(key, flags[i].name) != 0)
            continue;
        if ((is_true = PyObject_IsTrue(value)) == 1)
            me->options.flags |= flags[i].flag;
        return is_true < 0 ? -1 : 0;
    }
    return 1;
}

static int spans_read_keywords(span_t *me)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (me->keywords != NULL && PyDict_Next(me->keywords, &at, &key, &value)) {
        int is_field = spans_read_keyword(me, key, value);
        if (is_field > 0 && me->fields == NULL && (me->fields = PyDict_New()) == NULL)
            return -1;
        if (is_field < 0 || (is_field > 0 && PyDict_SetItem(me->fields, key, value) != 0))
            return -1;
    }
    return 0;
}

static int spans_span_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    span_t *me = stable_struct(self);
    PyObject *kind, *name;
    if (me->args != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a span is made once");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "OU:span", &kind, &name) || package_spans_kind_of(kind, &me->kind) != 0)
        return -1;
    me->options = (prof_span_options_t)PROF_SPAN_OPTIONS_INIT;
    me->args = Py_NewRef(args);
    me->name = spans_bytes_of(name);
    if (me->name == NULL)
        return -1;
    if (keywords != NULL && (me->keywords = PyDict_Copy(keywords)) == NULL)
        return -1;
    return spans_read_keywords(me);
}

static int spans_span_traverse(PyObject *self, visitproc visit, void *arg)
{
    const span_t *me = stable_struct(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(me->args);
    Py_VISIT(me->fields);
    Py_VISIT(me->keywords);
    return 0;
}

static int spans_span_clear(PyObject *self)
{
    span_t *me = stable_struct(self);
    Py_CLEAR(me->args);
    Py_CLEAR(me->fields);
    Py_CLEAR(me->keywords);
    return 0;
}

static void spans_end(span_t *me)
{
    prof_span_end(me->span); // takes NULL; one that is over was repaired
    me->span = NULL;
    me->is_open = false;
}

static void spans_span_dealloc(PyObject *self)
{
    span_t *me = stable_struct(self);
    PyObject_GC_UnTrack(self);
    spans_end(me); // nothing can end it any more
    spans_span_clear(self);
    Py_CLEAR(me->name);
    stable_free(self);
}

// --- begin, end, and what is said between

static int spans_add_field(prof_span_t *span, PyObject *key, PyObject *value)
{
    PyObject *key_bytes = spans_bytes_of(key), *bytes = key_bytes != NULL ? spans_bytes_of(value) : NULL;
    if (bytes != NULL)
        prof_span_set(span, PyBytes_AsString(key_bytes), PyBytes_AsString(bytes));
    Py_XDECREF(key_bytes);
    Py_XDECREF(bytes);
    return bytes != NULL ? 0 : -1;
}

static int spans_add_fields(const span_t *me)
{
    PyObject *key, *value, *fields = me->fields;
    Py_ssize_t at = 0;
    while (PyDict_Next(fields, &at, &key, &value))
        if (spans_add_field(me->span, key, value) != 0)
            return -1;
    return 0;
}

static PyObject *spans_span_begin(PyObject *self, PyObject *unused)
{
    span_t *me = stable_struct(self);
    (void)unused;
    if (me->name == NULL || me->is_open) {
        PyErr_SetString(PyExc_RuntimeError,
                        me->is_open ? "this span is open: make another one" : "it is not a span yet");
        return NULL;
    }
    me->options.trace = me->has_trace ? &me->trace : NULL;
    me->span = prof_span_begin(me->kind, PyBytes_AsString(me->name), &me->options);
    me->id = prof_span_id(me->span);
    me->is_open = true;
    if (me->id != 0 && me->fields != NULL && spans_add_fields(me) != 0) {
        spans_end(me);
        return NULL;
    }
    return Py_NewRef(self);
}

static PyObject *spans_span_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    spans_end(stable_struct(self));
    Py_RETURN_NONE;
}

// set(key, value)
static PyObject *spans_span_set(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const span_t *me = stable_struct(self);
    if (count != 2 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "set(key, value): the key is a str");
        return NULL;
    }
    if (me->id != 0 && me->span != NULL && spans_add_field(me->span, args[0], args[1]) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *spans_span_rename(PyObject *self, PyObject *name)
{
    const span_t *me = stable_struct(self);
    PyObject *bytes = spans_bytes_of(name);
    if (bytes == NULL)
        return NULL;
    prof_span_rename(me->span, PyBytes_AsString(bytes)); // takes NULL
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

static void spans_fail_with(prof_span_t *span, PyObject *type, PyObject *message)
{
    PyObject *type_bytes = type != NULL ? spans_bytes_of(type) : NULL,
             *bytes = message != NULL ? spans_bytes_of(message) : NULL;
    PyErr_Clear(); // an exception that cannot be shown is one all the same
    prof_span_fail(span, type_bytes != NULL ? PyBytes_AsString(type_bytes) : NULL,
                   bytes != NULL ? PyBytes_AsString(bytes) : NULL);
    Py_XDECREF(type_bytes);
    Py_XDECREF(bytes);
}

static void spans_fail_with_exception(prof_span_t *span, PyObject *exception)
{
    PyObject *type = spans_name_of_type(Py_TYPE(exception));
    spans_fail_with(span, type, exception);
    Py_XDECREF(type);
}

// fail(error=None, message=None)
static PyObject *spans_span_fail(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"error", "message", NULL};
    const span_t *me = stable_struct(self);
    PyObject *error = Py_None, *message = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:fail", names, &error, &message))
        return NULL;
    if (me->id == 0 || me->span == NULL)
        Py_RETURN_NONE;
    if (PyExceptionInstance_Check(error) && message == Py_None) {
        spans_fail_with_exception(me->span, error);
    } else {
        PyObject *type = PyExceptionInstance_Check(error) ? spans_name_of_type(Py_TYPE(error))
                         : PyType_Check(error)            ? spans_name_of_type((PyTypeObject *)error)
                         : error != Py_None               ? Py_NewRef(error)
                                                          : NULL;
        spans_fail_with(me->span, type, message != Py_None ? message : NULL);
        Py_XDECREF(type);
    }
    Py_RETURN_NONE;
}

// __exit__(type, value, traceback)
static PyObject *spans_span_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    span_t *me = stable_struct(self);
    PyObject *exception = count == 3 ? args[1] : Py_None;
    if (me->id != 0 && me->span != NULL && PyExceptionInstance_Check(exception) &&
        !PyErr_GivenExceptionMatches(exception, PyExc_GeneratorExit)) // its user wants no more of it
        spans_fail_with_exception(me->span, exception);
    spans_end(me);
    Py_RETURN_FALSE;
}

// For decorators: each call of a function is a span of its own.
static PyObject *spans_span_another(PyObject *self, PyObject *unused)
{
    const span_t *me = stable_struct(self);
    (void)unused;
    if (me->args == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "it is not a span yet");
        return NULL;
    }
    return PyObject_Call((PyObject *)Py_TYPE(self), me->args, me->keywords);
}

static PyObject *spans_span_id(PyObject *self, void *unused)
{
    (void)unused;
    const span_t *me = stable_struct(self);
    if (me->id == 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(me->id);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef span_methods[] = {
    {"begin", spans_span_begin, METH_NOARGS, "Begin it; as a context manager does. Returns the span."},
    {"end", spans_span_end, METH_NOARGS, "End it, on any green thread, task and thread."},
    {"set", FAST(spans_span_set), METH_FASTCALL, "set(key, value): add a field; its value is str(value)."},
    {"rename", spans_span_rename, METH_O, "rename(name): call it so; a request by its route, once that is known."},
    {"fail", FAST(spans_span_fail), METH_VARARGS | METH_KEYWORDS,
     "fail(error=None, message=None): it failed; the error is an exception, or what to call it."},
    {"another", spans_span_another, METH_NOARGS, "One of the same arguments, which has not begun."},
    {"__enter__", spans_span_begin, METH_NOARGS, NULL},
    {"__exit__", FAST(spans_span_exit), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef span_properties[] = {
    {"id", spans_span_id, NULL, "The id that goes with requests to others; None where it is not recorded.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot span_slots[] = {
    {Py_tp_new, PyType_GenericNew},      {Py_tp_init, spans_span_init},
    {Py_tp_dealloc, spans_span_dealloc}, {Py_tp_traverse, spans_span_traverse},
    {Py_tp_clear, spans_span_clear},     {Py_tp_methods, span_methods},
    {Py_tp_getset, span_properties},     {0, NULL},
};

PyType_Spec span_spec = {
    .name = "_greenprof.Span",
    .basicsize = sizeof(span_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = span_slots,
};

// --- of the calling coroutine

PyObject *spans_current(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    uint64_t id = prof_span_current();
    if (id == 0)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(id);
}

// The number of a client, by its name; -1 and a ValueError: there is none.
static int spans_client_of(PyObject *name)
{
#define NAME(id, name, is_named) name,
    static const char *const names[] = {GP_CLIENTS(NAME)};
#undef NAME
    for (int i = 0; name != NULL && PyUnicode_Check(name) && i < GP_CLIENTS_COUNT; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    PyErr_SetString(PyExc_ValueError, "no such client");
    return -1;
}

PyObject *spans_client_is_on(PyObject *module, PyObject *name)
{
    (void)module;
    int client = spans_client_of(name);
    return client >= 0 ? PyBool_FromLong(prof_core_interface()->spans->client_is_on((gp_client_t)client)) : NULL;
}

PyObject *spans_may_call(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    prof_span_kind_t kind;
    (void)module;
    if (prof_span_current() == 0) // at rest: the names are not looked at
        Py_RETURN_FALSE;
    int client = spans_client_of(count == 2 ? args[0] : NULL);
    if (client < 0 || package_spans_kind_of(args[1], &kind) != 0)
        return NULL;
    return PyBool_FromLong(prof_core_interface()->spans->may_call((gp_client_t)client, kind));
}

PyObject *coro_idle(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    prof_coro_idle();
    Py_RETURN_NONE;
}
