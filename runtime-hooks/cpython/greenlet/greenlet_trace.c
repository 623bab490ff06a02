// SPDX-License-Identifier: MIT
#include "greenlet/greenlet_trace.h"

#include "coro/hook_cost.h"
#include "coro/registry.h"
#include "greenlet/greenlet_native.h"
#include "greenlet/greenlet_records.h"
#include "greenlet/greenlet_run.h"
#include "signal/rest.h"

typedef gp_py_t *varargs_t(gp_py_t *module, gp_py_t *args);

static varargs_t *real_settrace, *real_gettrace;
static gp_py_t *tracer;

// A thread's state: is `tracer` set, and which tracer it calls.
static __thread bool tracing __attribute__((tls_model("initial-exec")));
static __thread gp_py_t *other_tracer __attribute__((tls_model("initial-exec")));

bool gp_greenlet_is_traced(void)
{
    return tracing;
}

static void greenlet_trace_set_real_tracer(gp_py_t *callable)
{
    gp_py_t *args = gp_py.tuple_pack(1, callable), *before = NULL;
    if (args != NULL) {
        before = real_settrace(NULL, args);
        gp_py.decref(args);
    }
    if (before != NULL)
        gp_py.decref(before);
    else
        gp_py.error_clear();
}

static void greenlet_trace_stop_tracing(void)
{
    tracing = false;
    greenlet_trace_set_real_tracer(other_tracer != NULL ? other_tracer : gp_py.none);
    if (other_tracer != NULL)
        gp_py.decref(other_tracer);
    other_tracer = NULL;
}

// A greenlet that is over waits for nothing any more, however long its object is kept.
static void greenlet_trace_end_if_over(gp_py_t *origin)
{
    if (!gp_greenlet_api.is_active(origin) && !gp_greenlet_api.is_main(origin))
        gp_coro_retire(gp_greenlet_take(origin));
}

// Called by greenlet on the greenlet that has just been switched to: (event, (origin, target)).
static gp_py_t *greenlet_trace_on_switch(gp_py_t *unused, gp_py_t **args, ptrdiff_t count)
{
    (void)unused;
    gp_py_t *pair = count == 2 ? args[1] : NULL, *result = gp_py.none;
    gp_py_t *target = pair != NULL ? gp_py.tuple_item(pair, 1) : NULL;
    if (target == NULL)
        return NULL;
    if (other_tracer != NULL) {
        result = gp_py.call(other_tracer, args[0], pair, NULL);
        if (result == NULL) { // greenlet drops a failing tracer: the program's, not ours
            gp_py.decref(other_tracer);
            other_tracer = NULL;
            tracing = false; // set again with the next greenlet that is made here
        }
    } else {
        gp_py.incref(result);
    }
    bool sampling = gp_greenlet_is_sampling();
    if (sampling) {
        uint64_t begun = gp_hook_cost_begin();
        gp_greenlet_switch_to(target);
        greenlet_trace_end_if_over(gp_py.tuple_item(pair, 0));
        gp_hook_cost_end(begun, 1);
    }
    if (!sampling && tracing && !gp_rest_is_now())
        greenlet_trace_stop_tracing();
    return result;
}

void gp_greenlet_trace(void)
{
    gp_greenlet_find_state((gp_py_t *)(uintptr_t)gp_greenlet_current());
    gp_py_t *now = real_gettrace(NULL, NULL);
    if (now == NULL) {
        gp_py.error_clear();
        return;
    }
    if (now == gp_py.none)
        gp_py.decref(now);
    else
        other_tracer = now;
    greenlet_trace_set_real_tracer(tracer);
    tracing = true;
}

static gp_py_t *greenlet_trace_settrace(gp_py_t *module, gp_py_t *args)
{
    if (!tracing || gp_py.tuple_size(args) != 1)
        return real_settrace(module, args);
    gp_py_t *before = other_tracer, *now = gp_py.tuple_item(args, 0);
    if (before == NULL) {
        before = gp_py.none;
        gp_py.incref(before);
    }
    other_tracer = now != gp_py.none ? now : NULL;
    if (other_tracer != NULL)
        gp_py.incref(other_tracer);
    return before;
}

static gp_py_t *greenlet_trace_gettrace(gp_py_t *module, gp_py_t *args)
{
    if (!tracing)
        return real_gettrace(module, args);
    gp_py_t *now = other_tracer != NULL ? other_tracer : gp_py.none;
    gp_py.incref(now);
    return now;
}

// Put `mine` into the definition of a function of the module; returns what was there, NULL where it is of another kind.
static varargs_t *greenlet_trace_replace(gp_py_t *module, const char *name, int flags, varargs_t *mine)
{
    gp_py_method_t *method = gp_py_method(module, name);
    if (method == NULL || method->flags != flags)
        return NULL;
    varargs_t *before = (varargs_t *)(uintptr_t)method->function;
    method->function = (void *)(uintptr_t)mine;
    return before;
}

bool gp_greenlet_trace_hook(gp_py_t *module)
{
    static gp_py_method_t method = {"greenprof", NULL, GP_PY_FASTCALL, NULL};
    method.function = (void *)(uintptr_t)greenlet_trace_on_switch;
    tracer = gp_py.function_new(&method, NULL, NULL);
    if (tracer == NULL)
        return false;
    real_settrace = greenlet_trace_replace(module, "settrace", GP_PY_VARARGS, greenlet_trace_settrace);
    real_gettrace = greenlet_trace_replace(module, "gettrace", GP_PY_NOARGS, greenlet_trace_gettrace);
    return real_settrace != NULL && real_gettrace != NULL;
}
