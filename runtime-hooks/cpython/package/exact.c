// SPDX-License-Identifier: MIT
#define Py_BUILD_CORE 1 // the code of a frame, without a reference taken and dropped at every call
#include "exact.h"

#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_ceval.h> // _PyEval_SetProfile()
#endif
#include <stdlib.h>

#include "exact_context.h"
#include "exact_others.h"
#include "exact_profile.h"
#include "exact_stack.h"
#include "interface.h"

#if PY_VERSION_HEX >= 0x030d0000
#define CODE_OF(frame) ((frame)->f_frame->f_executable)
#else
#define CODE_OF(frame) ((frame)->f_frame->f_code)
#endif

static inline int count(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
    (void)unused;
    uint64_t now = exact_ticks();
    exact_context_t *context = exact_context_current(now);
    if (context == NULL)
        return 0;
    PyObject *object = argument;
    const void *key;
    if (what == PyTrace_CALL || what == PyTrace_RETURN)
        key = object = (PyObject *)CODE_OF(frame);
    else if (what >= PyTrace_C_CALL && what <= PyTrace_C_RETURN && PyCFunction_Check(argument))
        key = ((PyCFunctionObject *)argument)->m_ml;
    else
        return 0;
    bool is_call = what == PyTrace_CALL || what == PyTrace_C_CALL;
    for (size_t i = 0; i < context->count; i++)
        if (is_call)
            exact_stack_push(context->stacks[i], now, key, object);
        else
            exact_stack_pop(context->stacks[i], now, key);
    return 0;
}

static int on_call(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
    count(unused, frame, what, argument);
    return exact_others != NULL ? exact_others_call(frame, what, argument) : 0;
}

// Of the calling thread: calls that it makes for others (../handed.h), in progress. It is profiled meanwhile.
static __thread unsigned calls_for_others __attribute__((tls_model("initial-exec")));

static void begin_call(void)
{
    calls_for_others++;
    if (exact_others_precede() < 0)
        PyErr_Clear();
}

static void end_call(void)
{
    PyThreadState *thread = PyThreadState_Get();
    uint64_t id = PyThreadState_GetID(thread);
    if (calls_for_others == 0 || --calls_for_others > 0)
        return;
    for (const exact_t *profile = exact_running; profile != NULL; profile = profile->next)
        if (profile->scope == EXACT_PROCESS || profile->thread == id)
            return;
    if (exact_others_give_back(thread) < 0)
        PyErr_Clear();
}

static void on_event(gp_language_event_t event, void *coroutine)
{
    if (event == GP_LANGUAGE_CALL_BEGINS)
        begin_call();
    else if (event == GP_LANGUAGE_CALL_HAS_ENDED)
        end_call();
    else
        exact_context_on_event(event, coroutine);
}

void exact_detach(void)
{
    exact_context_t *context = exact_running != NULL ? exact_context_current(exact_ticks()) : NULL;
    if (context != NULL)
        exact_context_detach(context->key, exact_ticks());
}

void exact_enter_thread(void)
{
    if (exact_running != NULL && exact_others_precede() < 0)
        PyErr_Clear();
}

// All threads that nobody profiles; and all that we do, back to whom they belong.
static int each_thread(bool start)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; thread != NULL; thread = PyThreadState_Next(thread)) {
        int error = 0;
        if (!start)
            error = exact_others_give_back(thread);
        else if (thread->c_profilefunc == NULL)
            error = _PyEval_SetProfile(thread, on_call, NULL);
        if (error < 0)
            return -1;
    }
    return 0;
}

exact_t *exact_new(enum exact_scope scope)
{
    exact_t *profile = calloc(1, sizeof(*profile));
    if (profile == NULL)
        return (exact_t *)PyErr_NoMemory();
    profile->scope = scope;
    return profile;
}

int exact_start(exact_t *profile)
{
    exact_others_watch(on_call);
    if (exact_others_precede() < 0)
        return -1;
    prof_core_interface()->language_watch(on_event);
    uint64_t now = exact_ticks();
    profile->running = true;
    profile->thread = PyThreadState_GetID(PyThreadState_Get());
    profile->next = exact_running;
    exact_running = profile;
    exact_context_on_start();
    exact_context_t *context = exact_context_look(now);
    exact_stack_t *stack = context != NULL ? exact_context_join(context, profile, now) : NULL;
    profile->owner = stack != NULL ? context->serial : 0;
    if (stack == NULL) {
        exact_stop(profile);
        PyErr_NoMemory();
        return -1;
    }
    exact_stack_resume(stack, now);
    return profile->scope == EXACT_PROCESS ? each_thread(true) : 0;
}

int exact_stop(exact_t *profile)
{
    uint64_t now = exact_ticks();
    exact_t **link = &exact_running;
    while (*link != NULL && *link != profile)
        link = &(*link)->next;
    if (*link == NULL)
        return 0;
    *link = profile->next;
    profile->running = false;
    PyThreadState *thread = PyThreadState_Get();
    profile->was_taken |= thread->c_profilefunc != on_call && PyThreadState_GetID(thread) == profile->thread;
    exact_context_leave(profile, now);
    if (exact_running != NULL)
        return 0;
    prof_core_interface()->language_watch(NULL);
    exact_context_forget_all();
    return each_thread(false);
}

void exact_free(exact_t *profile)
{
    if (profile == NULL)
        return;
    exact_stop(profile);
    exact_table_free(&profile->table);
    free(profile);
}

unsigned long long exact_total_ns(const exact_t *profile)
{
    return (unsigned long long)((double)profile->total_ticks * exact_seconds_per_tick() * 1e9);
}

int exact_was_taken(const exact_t *profile)
{
    return profile->was_taken;
}
