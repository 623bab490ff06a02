// SPDX-License-Identifier: MIT
#define Py_BUILD_CORE 1
#include "exact_others.h"

#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_ceval.h> // _PyEval_SetProfile()
#endif
#include <stdlib.h>

exact_other_t *exact_others;
static Py_tracefunc exact;

static exact_other_t **link_of(const PyThreadState *thread)
{
    exact_other_t **link = &exact_others;
    while (*link != NULL && (*link)->thread != thread)
        link = &(*link)->next;
    return link;
}

static int precede_on(PyThreadState *thread)
{
    if (thread->c_profilefunc == exact)
        return 0;
    exact_other_t *other = NULL;
    if (thread->c_profilefunc != NULL) {
        other = malloc(sizeof(*other));
        if (other == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        *other = (exact_other_t){
            .thread = thread, .call = thread->c_profilefunc, .argument = Py_XNewRef(thread->c_profileobj)};
    }
    if (_PyEval_SetProfile(thread, exact, NULL) < 0) {
        if (other != NULL)
            Py_XDECREF(other->argument);
        free(other);
        return -1;
    }
    if (other != NULL) {
        other->next = exact_others;
        exact_others = other;
    }
    return 0;
}

int exact_others_precede(void)
{
    return precede_on(PyThreadState_Get());
}

int exact_others_give_back(PyThreadState *thread)
{
    exact_other_t **link = link_of(thread), *other = *link;
    if (other == NULL)
        return thread->c_profilefunc == exact ? _PyEval_SetProfile(thread, NULL, NULL) : 0;
    *link = other->next;
    int error = thread->c_profilefunc == exact ? _PyEval_SetProfile(thread, other->call, other->argument) : 0;
    Py_XDECREF(other->argument);
    free(other);
    return error;
}

int exact_others_call(PyFrameObject *frame, int what, PyObject *argument)
{
    PyThreadState *thread = PyThreadState_Get();
    exact_other_t *other = *link_of(thread);
    if (other == NULL)
        return 0;
    PyObject *mine = Py_XNewRef(other->argument);
    int result = other->call(mine, frame, what, argument);
    Py_XDECREF(mine);
    if (result < 0 &&
        thread->c_profilefunc != exact) { // one in Python that raises is taken off by CPython, and us with it
        PyObject *error[3];
        PyErr_Fetch(&error[0], &error[1], &error[2]);
        exact_other_t **link = link_of(thread), *gone = *link;
        if (gone != NULL) {
            *link = gone->next;
            Py_XDECREF(gone->argument);
            free(gone);
        }
        if (_PyEval_SetProfile(thread, exact, NULL) < 0)
            PyErr_Clear();
        PyErr_Restore(error[0], error[1], error[2]);
    }
    return result;
}

// Let a call of another profiler's find the thread as it would be without exact profiles.
static bool step_aside(PyThreadState *thread)
{
    if (thread->c_profilefunc != exact)
        return false;
    if (exact_others_give_back(thread) < 0)
        PyErr_Clear();
    return true;
}

static PyObject *step_back(PyThreadState *thread, bool was_here, PyObject *result)
{
    PyObject *error[3];
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    if (was_here && precede_on(thread) < 0)
        PyErr_Clear();
    PyErr_Restore(error[0], error[1], error[2]);
    return result;
}

static PyCFunction real_setprofile, real_getprofile;

static PyObject *setprofile(PyObject *self, PyObject *function)
{
    PyThreadState *thread = PyThreadState_Get();
    bool was_here = step_aside(thread);
    return step_back(thread, was_here, real_setprofile(self, function));
}

static PyObject *getprofile(PyObject *self, PyObject *unused)
{
    PyThreadState *thread = PyThreadState_Get();
    bool was_here = step_aside(thread);
    return step_back(thread, was_here, real_getprofile(self, unused));
}

#if PY_VERSION_HEX < 0x030c0000 // later cProfiles are called by sys.monitoring, beside others
static PyCFunction real_disable;
static PyCFunctionWithKeywords real_enable;

static PyObject *enable(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyThreadState *thread = PyThreadState_Get();
    bool was_here = step_aside(thread);
    return step_back(thread, was_here, real_enable(self, args, keywords));
}

static PyObject *disable(PyObject *self, PyObject *unused)
{
    PyThreadState *thread = PyThreadState_Get();
    bool was_here = step_aside(thread);
    return step_back(thread, was_here, real_disable(self, unused));
}
#endif

static PyCFunction wrap(PyMethodDef *method, int flags, PyCFunction mine)
{
    if (method == NULL || method->ml_flags != flags)
        return NULL;
    PyCFunction before = method->ml_meth;
    method->ml_meth = mine;
    return before;
}

static PyMethodDef *of_module(const char *name, const char *function)
{
    PyObject *module = PyImport_ImportModule(name);
    PyModuleDef *definition = module != NULL ? PyModule_GetDef(module) : NULL;
    PyMethodDef *method = definition != NULL ? definition->m_methods : NULL;
    while (method != NULL && method->ml_name != NULL && strcmp(method->ml_name, function) != 0)
        method++;
    Py_XDECREF(module);
    PyErr_Clear();
    return method != NULL && method->ml_name != NULL ? method : NULL;
}

#if PY_VERSION_HEX < 0x030c0000
static PyMethodDef *of_profiler(const char *function)
{
    PyObject *module = PyImport_ImportModule("_lsprof");
    PyObject *type = module != NULL ? PyObject_GetAttrString(module, "Profiler") : NULL;
    PyObject *method = type != NULL ? PyObject_GetAttrString(type, function) : NULL;
    PyMethodDef *definition =
        method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type) ? ((PyMethodDescrObject *)method)->d_method : NULL;
    Py_XDECREF(method);
    Py_XDECREF(type);
    Py_XDECREF(module);
    PyErr_Clear();
    return definition;
}
#endif

void exact_others_watch(Py_tracefunc mine)
{
    if (exact != NULL)
        return;
    exact = mine;
    real_setprofile = wrap(of_module("sys", "setprofile"), METH_O, setprofile);
    real_getprofile = wrap(of_module("sys", "getprofile"), METH_NOARGS, getprofile);
#if PY_VERSION_HEX < 0x030c0000
    real_enable = (PyCFunctionWithKeywords)(void (*)(void))wrap(of_profiler("enable"), METH_VARARGS | METH_KEYWORDS,
                                                                (PyCFunction)(void (*)(void))enable);
    real_disable = wrap(of_profiler("disable"), METH_NOARGS, disable);
#endif
}
