// SPDX-License-Identifier: MIT
// The extension module behind the package greenprof: its types are Profile, over <greenprof/prof.h>, and Span
// (spans.h).
#include "stable.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "contexts.h"
#include "coro_views.h"
#include "greenprof/consumer.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "greenprof/trace.h"
#include "interface.h"
#include "spans.h"

typedef struct profile {
    prof_t *profile; // NULL until it is started for the first time
    prof_options_t options;
    PyObject *name; // bytes
    bool running;
} profile_t;

static PyObject *greenprof_fail(int error)
{
    static const struct {
        int error;
        const char *why;
    } reasons[] = {
        {EBUSY, "the program handles every signal that could be used for sampling"},
        {ENOSYS, "no way to sample works here (perf events, timers)"},
        {ENOTSUP, "not supported in this process"},
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].error == error) {
            PyObject *args = Py_BuildValue("(is)", error, reasons[i].why);
            if (args != NULL)
                PyErr_SetObject(PyExc_OSError, args);
            Py_XDECREF(args);
            return NULL;
        }
    }
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *greenprof_result(int error)
{
    if (error < 0)
        return greenprof_fail(-error);
    Py_RETURN_NONE;
}

static int greenprof_profile_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"scope", "clock", "mode", "frequency", "name", NULL};
    profile_t *me = stable_struct(self);
    int scope = 0, clock = 0, mode = 0;
    unsigned frequency = PROF_FREQUENCY_DEFAULT_HZ;
    PyObject *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|iiiIO&", names, &scope, &clock, &mode, &frequency,
                                     PyUnicode_FSConverter, &name))
        return -1;
    me->options = (prof_options_t)PROF_OPTIONS_INIT;
    me->options.scope = (prof_scope_t)scope;
    me->options.clock = (prof_clock_t)clock;
    me->options.mode = (prof_mode_t)mode;
    me->options.frequency_hz = frequency;
    Py_XDECREF(me->name);
    me->name = name;
    return 0;
}

static void greenprof_profile_dealloc(PyObject *self)
{
    profile_t *me = stable_struct(self);
    prof_t *profile = me->profile;
    me->profile = NULL;
    Py_BEGIN_ALLOW_THREADS
    prof_free(profile);
    Py_END_ALLOW_THREADS
    Py_XDECREF(me->name);
    stable_free(self);
}

// With the interpreter lock: which greenlet runs is asked under it.
static PyObject *greenprof_profile_start(PyObject *self, PyObject *unused)
{
    (void)unused;
    profile_t *me = stable_struct(self);
    if (me->running)
        return greenprof_result(-EALREADY);
    if (me->profile != NULL) {
        int error = prof_resume(me->profile);
        me->running = error == 0;
        return greenprof_result(error);
    }
    me->options.name = me->name != NULL ? PyBytes_AsString(me->name) : "python";
    me->profile = prof_start(&me->options);
    if (me->profile == NULL)
        return greenprof_fail(errno);
    me->running = true;
    Py_RETURN_NONE;
}

static PyObject *greenprof_profile_stop(PyObject *self, PyObject *unused)
{
    (void)unused;
    profile_t *me = stable_struct(self);
    if (!me->running)
        return greenprof_result(-EALREADY);
    me->running = false;
    int error;
    Py_BEGIN_ALLOW_THREADS
    error = prof_stop(me->profile);
    Py_END_ALLOW_THREADS
    return greenprof_result(error);
}

typedef int write_t(prof_t *profile, const char *format, const char *path);

// Have a profile written. Returns 0, or -1 and a Python error.
static int greenprof_write_with(write_t *write, PyObject *self, PyObject *args)
{
    profile_t *me = stable_struct(self);
    PyObject *path = NULL;
    const char *format = "pstats";
    if (!PyArg_ParseTuple(args, "O&|s", PyUnicode_FSConverter, &path, &format))
        return -1;
    int error = -ENOENT;
    const char *name = PyBytes_AsString(path);
    if (me->profile != NULL) {
        Py_BEGIN_ALLOW_THREADS
        error = write(me->profile, format, name);
        Py_END_ALLOW_THREADS
    }
    if (me->profile == NULL) {
        PyErr_SetString(PyExc_ValueError, "the profile has never been started");
    } else if (error == -EINVAL) {
        PyErr_Format(PyExc_ValueError, "no such format: %s", format);
    } else if (error < 0) {
        errno = -error;
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, name);
    }
    Py_DECREF(path);
    return error < 0 ? -1 : 0;
}

static PyObject *greenprof_profile_dump(PyObject *self, PyObject *args)
{
    if (greenprof_write_with(prof_dump, self, args) != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *greenprof_profile_finish(PyObject *self, PyObject *args)
{
    profile_t *me = stable_struct(self);
    if (greenprof_write_with(prof_finish, self, args) != 0)
        return NULL;
    me->profile = NULL; // no longer ours
    me->running = false;
    Py_RETURN_NONE;
}

static PyObject *greenprof_profile_total(PyObject *self, void *unused)
{
    (void)unused;
    const profile_t *me = stable_struct(self);
    return PyLong_FromUnsignedLongLong(prof_total_ns(me->profile));
}

static PyObject *greenprof_profile_running(PyObject *self, void *unused)
{
    (void)unused;
    const profile_t *me = stable_struct(self);
    return PyBool_FromLong(me->running);
}

static PyMethodDef profile_methods[] = {
    {"start", greenprof_profile_start, METH_NOARGS, "Start, or let a stopped profile go on."},
    {"stop", greenprof_profile_stop, METH_NOARGS, "Stop. What was sampled before is in the profile when this returns."},
    {"dump", greenprof_profile_dump, METH_VARARGS, "dump(path, format='pstats'): write the profile to a file."},
    {"finish", greenprof_profile_finish, METH_VARARGS,
     "finish(path, format='pstats'): stop it, have it written, and be a new one."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef profile_properties[] = {
    {"total_ns", greenprof_profile_total, NULL, "Exact CPU time so far, in nanoseconds.", NULL},
    {"running", greenprof_profile_running, NULL, "Whether it runs.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot profile_slots[] = {
    {Py_tp_new, PyType_GenericNew},   {Py_tp_init, greenprof_profile_init}, {Py_tp_dealloc, greenprof_profile_dealloc},
    {Py_tp_methods, profile_methods}, {Py_tp_getset, profile_properties},   {0, NULL},
};

static PyType_Spec profile_spec = {
    .name = "_greenprof.Profile",
    .basicsize = sizeof(profile_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = profile_slots,
};

// UTF-8 of a str; NULL and a Python error where it is none.
static const char *greenprof_utf8_of(PyObject *text)
{
    if (PyUnicode_Check(text))
        return PyUnicode_AsUTF8AndSize(text, NULL);
    PyObject *name = PyType_GetName(Py_TYPE(text));
    if (name != NULL)
        PyErr_Format(PyExc_TypeError, "expected str or None, not %.100U", name);
    Py_XDECREF(name);
    return NULL;
}

static PyObject *greenprof_set_name(PyObject *module, PyObject *text)
{
    (void)module;
    const char *utf8 = text != Py_None ? greenprof_utf8_of(text) : NULL;
    if (utf8 == NULL && text != Py_None)
        return NULL;
    prof_coro_name(NULL, utf8);
    Py_RETURN_NONE;
}

static PyObject *greenprof_set_trace(PyObject *module, PyObject *text)
{
    (void)module;
    prof_trace_id_t id;
    if (text == Py_None) {
        prof_trace_clear();
        Py_RETURN_NONE;
    }
    const char *utf8 = greenprof_utf8_of(text);
    if (utf8 == NULL)
        return NULL;
    if (prof_trace_parse(utf8, &id) != 0)
        return PyErr_Format(PyExc_ValueError, "no trace id: %R", text);
    return greenprof_result(prof_trace_set(&id));
}

// There may be a password in a URL. Returns NULL.
static PyObject *greenprof_refuse_consumer(const char *why, PyObject *text, const char *url)
{
    const char *authority = strstr(url, "://");
    PyObject *scheme = authority != NULL ? PyUnicode_FromStringAndSize(url, authority - url) : NULL;
    if (authority == NULL)
        PyErr_Format(PyExc_ValueError, "%s: %R", why, text);
    else if (scheme != NULL)
        PyErr_Format(PyExc_ValueError, "%s: '%U://...'", why, scheme);
    Py_XDECREF(scheme);
    return NULL;
}

static PyObject *greenprof_consumer_open(PyObject *module, PyObject *text)
{
    (void)module;
    const char *url = greenprof_utf8_of(text);
    if (url == NULL)
        return NULL;
    int error = prof_consumer_open(url);
    if (error == -EINVAL || error == -ENOTSUP)
        return greenprof_refuse_consumer(error == -EINVAL ? "no URL of a consumer" : "no such consumer", text, url);
    return greenprof_result(error);
}

// Let other threads run, as closing may wait for a backend.
static PyObject *greenprof_consumer_close(PyObject *module, PyObject *text)
{
    (void)module;
    const char *url = text != Py_None ? greenprof_utf8_of(text) : NULL;
    int error;
    if (url == NULL && text != Py_None)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    error = prof_consumer_close(url);
    Py_END_ALLOW_THREADS
    return greenprof_result(error);
}

// Let other threads run, for so many seconds at most.
static PyObject *greenprof_wait_for(int (*wait)(unsigned limit_ms), PyObject *limit)
{
    double seconds = PyFloat_AsDouble(limit);
    int error;
    if (PyErr_Occurred() != NULL)
        return NULL;
    if (!(seconds >= 0 && seconds <= 86400))
        return PyErr_Format(PyExc_ValueError, "no time limit in seconds: %R", limit);
    Py_BEGIN_ALLOW_THREADS
    error = wait((unsigned)(seconds * 1000));
    Py_END_ALLOW_THREADS
    return greenprof_result(error);
}

static PyObject *greenprof_consumer_flush(PyObject *module, PyObject *limit)
{
    (void)module;
    return greenprof_wait_for(prof_consumer_flush, limit);
}

static PyObject *greenprof_flush(PyObject *module, PyObject *limit)
{
    (void)module;
    return greenprof_wait_for(prof_finish_flush, limit);
}

static PyObject *greenprof_consumer_status(PyObject *module, PyObject *text)
{
    (void)module;
    prof_consumer_status_t status = {.size = sizeof(status)};
    const char *url = text != Py_None ? greenprof_utf8_of(text) : NULL;
    int error;
    if (url == NULL && text != Py_None)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    error = prof_consumer_status(url, &status);
    Py_END_ALLOW_THREADS
    if (error != 0)
        return greenprof_fail(-error);
    return Py_BuildValue("{sK sK sK sK sK sK sK sK sK sK sK si sK sK}", "given", status.given, "sent", status.sent,
                         "refused", status.refused, "lost_queue", status.lost_queue, "lost_end", status.lost_end,
                         "fast", status.fast, "queued", status.queued, "spooled", status.spooled, "recovered",
                         status.recovered, "unheard", status.unheard, "failures", status.failures, "last_error",
                         (int)status.last_error, "profiles", status.profiles, "profiles_lost", status.profiles_lost);
}

static PyObject *greenprof_detach(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    prof_core_interface()->language->detach();
    Py_RETURN_NONE;
}

static PyObject *greenprof_native(PyObject *module, PyObject *change)
{
    (void)module;
    long by = PyLong_AsLong(change);
    if (by == -1 && PyErr_Occurred())
        return NULL;
    prof_core_interface()->language->native(by > 0 ? 1 : -1);
    Py_RETURN_NONE;
}

static PyObject *greenprof_has_yielded(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(prof_core_interface()->profiles->has_yielded());
}

static PyObject *greenprof_calls_are_taken(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(prof_core_interface()->language->calls_are_taken());
}

static PyMethodDef functions[] = {
    {"calls_are_taken", greenprof_calls_are_taken, METH_NOARGS,
     "Has another tool taken the calling thread from exact profiles, so that calls are missing?"},
    {"context_counts", context_counts, METH_NOARGS, "How many contexts were accepted and refused so far, by reason."},
    {"context_read", context_read, METH_O, "context_read([(name, value), ...]): see greenprof.context_read()."},
    {"context_write", context_write, METH_VARARGS, "context_write(format, context): see greenprof.context_headers()."},
    {"flush", greenprof_flush, METH_O,
     "flush(seconds): wait until every profile that was finished is written; TimeoutError."},
    {"has_yielded", greenprof_has_yielded, METH_NOARGS,
     "Has the program taken every signal that could be used for sampling?"},
    {"native", greenprof_native, METH_O, "native(+1), until native(-1): native frames among those of Python."},
    {"client_is_on", spans_client_is_on, METH_O, "Is a client (greenprof.libraries) switched on?"},
    {"coro_idle", coro_idle, METH_NOARGS,
     "The calling green thread or task goes back to its pool, to wait for work: it leaves its request, and until it "
     "runs "
     "again it is idle, which is no waiting."},
    {"consumer", greenprof_consumer_open, METH_O, "consumer(url): from now on the spans of requests go there."},
    {"consumer_close", greenprof_consumer_close, METH_O,
     "consumer_close(url), or None for all: what is queued is sent or kept."},
    {"consumer_flush", greenprof_consumer_flush, METH_O,
     "consumer_flush(seconds): wait until nothing is queued; TimeoutError."},
    {"consumer_status", greenprof_consumer_status, METH_O,
     "consumer_status(url), or None for all: what became of the spans."},
    {"coroutines", census_list, METH_NOARGS, "Every live coroutine, as tuples."},
    {"current_span", spans_current, METH_NOARGS,
     "The id of the span that is open on the calling green thread, task or thread; None where none is recorded."},
    {"dump_coroutines", census_dump, METH_O,
     "dump_coroutines(path): write the live coroutines and their stacks, for `greenprof coroutines`."},
    {"detach", greenprof_detach, METH_NOARGS,
     "The calling green thread or task leaves its request, and is in those only that it begins itself: for one that "
     "works for many requests."},
    {"may_call", (PyCFunction)(void (*)(void))spans_may_call, METH_FASTCALL,
     "may_call(client, kind): is a call of it to be a span, now and here?"},
    {"set_hmac_keys", context_keys, METH_O,
     "Set the keys of headers that may have a request profiled: a str with commas, the first one signs; None = none."},
    {"set_policy", context_policy, METH_O,
     "Set which requests consumers get: 'always', 'never', 'signed', '1/N', 'slower=20ms'."},
    {"set_name", greenprof_set_name, METH_O,
     "Name the calling green thread or task, or rename it; None: named by its function. A thread keeps its name."},
    {"set_trace", greenprof_set_trace, METH_O,
     "Set the trace id (UUID, 32 hex digits, traceparent) of the calling coroutine, or None."},
    {NULL, NULL, 0, NULL},
};

static int greenprof_add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = stable_type(spec);
    int error = type != NULL ? PyModule_AddObjectRef(module, name, type) : -1;
    Py_XDECREF(type);
    return error;
}

static int greenprof_refuse_python(void)
{
    const char *version = Py_GetVersion(); // "3.13.5 (main, Jun 25 2025, 18:55:22) [GCC 14.2.0]"
    const char *end = strstr(version, " (");
    PyObject *text = PyUnicode_FromStringAndSize(version, end != NULL ? end - version : (Py_ssize_t)strlen(version));
    if (text != NULL)
        PyErr_Format(PyExc_ImportError, "greenprof does not know Python %U", text);
    Py_XDECREF(text);
    return -1;
}

static int greenprof_execute(PyObject *module)
{
    const gp_core_interface_t *core = prof_core_interface();
    if (core->size < sizeof(*core) || core->language->attach() != 0)
        return greenprof_refuse_python();
    if (PyModule_AddStringConstant(module, "__version__", prof_version(NULL, NULL, NULL)) != 0 ||
        context_constants(module) != 0 || greenprof_add_type(module, "Profile", &profile_spec) != 0)
        return -1;
    return greenprof_add_type(module, "Span", &span_spec);
}

PyMODINIT_FUNC PyInit__greenprof(void);
PyMODINIT_FUNC PyInit__greenprof(void)
{
    return stable_begin() == 0 ? stable_module("_greenprof", functions, greenprof_execute) : NULL;
}
