// SPDX-License-Identifier: MIT
#include "greenlet/hubs.h"

#include <string.h>
#include <time.h>

#include "coro/hook_cost.h"
#include "coro/switch.h"
#include "greenlet/greenlet_records.h"
#include "greenlet/greenlet_run.h"
#include "greenlet/loop_look.h"
#include "interpreter/api.h"
#include "not_known.h"
#include "signal/ticks.h"

typedef gp_py_t *one_t(gp_py_t *self, gp_py_t *argument);
typedef gp_py_t *keywords_t(gp_py_t *self, gp_py_t *args, gp_py_t *keywords);
typedef gp_py_t *fastcall_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names);

static one_t *real_pop;
static keywords_t *real_run_callback, *real_timer_start;
static fastcall_t *fast_run_callback, *fast_timer_start; // instead, as Cython 3 may make them
static gp_py_t *timer_type;                              // eventlet's
static gp_py_t *self_name, *name_name, *at_name;

__thread gp_hub_here_t gp_hub_here __attribute__((tls_model("initial-exec")));

// A moment at which both clocks were read, of each thread: until it is old, the distance to it tells the ticks of
// others.
static __thread struct {
    double seconds; // of CLOCK_MONOTONIC, which is time.monotonic()
    double ticks_per_second;
    uint64_t ticks, old_ticks; // and from when on the two may have drifted apart
} anchor __attribute__((tls_model("initial-exec")));

__attribute__((noinline)) static void hubs_set_anchor(void)
{
    enum { PER_SECOND = 100 }; // a clock that is being adjusted by 500 ppm drifts by 5 us meanwhile
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    anchor.ticks = gp_ticks();
    anchor.seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    anchor.ticks_per_second = (double)gp_ticks_hz();
    anchor.old_ticks = anchor.ticks + gp_ticks_hz() / PER_SECOND;
}

// A moment of time.monotonic(), in ticks.
static uint64_t hubs_ticks_at(double seconds)
{
    static const double YEAR_S = 3.2e7;
    uint64_t now = gp_ticks();
    if (now >= anchor.old_ticks || now < anchor.ticks)
        hubs_set_anchor();
    double ahead = seconds - anchor.seconds;
    int64_t distance = (int64_t)((ahead > YEAR_S    ? YEAR_S
                                  : ahead > -YEAR_S ? ahead
                                                    : -YEAR_S) *
                                 anchor.ticks_per_second);
    return distance > 0 || (uint64_t)-distance < anchor.ticks ? anchor.ticks + (uint64_t)distance : 1;
}

// The greenlet that runs on the calling thread: by greenlet's own state, where its place is known.
static const void *hubs_running(void)
{
    const void *now = gp_language_running(gp_greenlet_here.state);
    return now != NULL ? now : gp_greenlet_current();
}

static double hubs_number(gp_py_t *object)
{
    if (__builtin_expect(gp_py_type(object) == gp_py.float_type, 1))
        return gp_py_float(object);
    double value = gp_py.number(object);
    if (value == -1.0)
        gp_py.error_clear();
    return value;
}

// heapq.heappop(): eventlet's hub takes (when, timer) off, and then calls the timer.
static gp_py_t *hubs_on_pop(gp_py_t *self, gp_py_t *heap)
{
    gp_py_t *item = real_pop(self, heap);
    if (item == NULL || !gp_greenlet_is_sampling() || gp_py_type(item) != gp_py.tuple_type)
        return item;
    gp_py_t *const *pair = gp_py_pair(item);
    if (pair == NULL || gp_py_type(pair[1]) != timer_type)
        return item;
    uint64_t begun = gp_hook_cost_begin();
    gp_hub_here.hub = hubs_running();
    gp_hub_here.ready_ticks = hubs_ticks_at(hubs_number(pair[0]));
    gp_hook_cost_end(begun, 0);
    return item;
}

bool gp_hub_runs(void)
{
    return gp_hub_here.hub == hubs_running();
}

// gevent's is a greenlet.
static bool hubs_is_gevents(gp_py_t *type)
{
    static gp_py_t *hub, *last_type;
    static bool last_is;
    if (type == last_type)
        return last_is;
    if (hub == NULL)
        hub = gp_py_type_in("gevent.hub", "Hub");
    last_is = hub != NULL && gp_py.is_subtype(type, hub);
    last_type = type;
    return last_is;
}

// Is the greenlet eventlet's hub: is its function bound to a BaseHub?
static bool hubs_is_eventlets(gp_py_t *args)
{
    static gp_py_t *hub;
    gp_py_t *function = gp_py.tuple_size(args) > 0 ? gp_py.tuple_item(args, 0) : NULL;
    if (function == NULL || gp_py_type(function) != gp_py.bound_type)
        return false;
    if (hub == NULL)
        hub = gp_py_type_in("eventlet.hubs.hub", "BaseHub");
    return hub != NULL && gp_py.is_subtype(gp_py_type(gp_py_bound_self(function)), hub);
}

bool gp_hub_is_one(gp_py_t *type, gp_py_t *args)
{
    return hubs_is_gevents(type) || hubs_is_eventlets(args);
}

static bool hubs_is_switch(gp_py_t *callback)
{
    gp_py_t *name = gp_py.get_attr_of(callback, name_name);
    const char *text = name != NULL ? gp_py.utf8(name, NULL) : NULL;
    bool is = text != NULL && strcmp(text, "switch") == 0;
    gp_py.drop(name);
    return is;
}

// The same of a bound method, named as its function: few functions are asked again and again.
static bool hubs_is_bound_switch(gp_py_t *method)
{
    static gp_py_t *last[2]; // last seen with another name, and with this one; kept alive
    gp_py_t *function = gp_py_bound_function(method);
    if (function == last[true] || function == last[false])
        return function == last[true];
    bool is = hubs_is_switch(method);
    gp_py_t *before = last[is];
    gp_py.incref(function);
    last[is] = function;
    gp_py.drop(before);
    gp_py.error_clear();
    return is;
}

// The greenlet that switch() of `owner` wakes: a greenlet itself, or the calling one, which will wait for its Waiter.
// NULL = neither.
static prof_coro_t *hubs_woken_with(gp_py_t *owner)
{
    const gp_greenlet_t *found = gp_greenlet_find(owner);
    if (found != NULL)
        return found->coro;
    return strstr(gp_py_type_name(owner), "Waiter") != NULL ? gp_greenlet_running(&gp_step_here).coro : NULL;
}

static prof_coro_t *hubs_woken_by(gp_py_t *callback)
{
    // A greenlet's, and a Waiter's: no object is made to look into them.
    if (gp_py_type(callback) == gp_py.builtin_type) {
        gp_py_t *owner = gp_py_builtin_self(callback);
        return owner != NULL && strcmp(gp_py_definition(callback)->name, "switch") == 0 ? hubs_woken_with(owner) : NULL;
    }
    if (gp_py_type(callback) == gp_py.bound_type)
        return hubs_is_bound_switch(callback) ? hubs_woken_with(gp_py_bound_self(callback)) : NULL;
    gp_py_t *owner = hubs_is_switch(callback) ? gp_py.get_attr_of(callback, self_name) : NULL;
    prof_coro_t *coro = owner != NULL ? hubs_woken_with(owner) : NULL;
    gp_py.drop(owner);
    gp_py.error_clear();
    return coro;
}

static gp_py_t *hubs_first_of(gp_py_t *args)
{
    return gp_py.tuple_size(args) > 0 ? gp_py.tuple_item(args, 0) : NULL;
}

// callback: NULL = there is none, it was not accepted
static void hubs_callback_is_run(gp_py_t *callback)
{
    if (callback == NULL || !gp_greenlet_is_sampling())
        return;
    uint64_t begun = gp_hook_cost_begin();
    prof_coro_ready(hubs_woken_by(callback));
    gp_hook_cost_end(begun, 0);
}

static gp_py_t *hubs_on_run_callback(gp_py_t *loop, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *result = real_run_callback(loop, args, keywords);
    hubs_callback_is_run(result != NULL ? hubs_first_of(args) : NULL);
    return result;
}

static gp_py_t *hubs_on_fast_run_callback(gp_py_t *loop, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names)
{
    gp_py_t *result = fast_run_callback(loop, args, count, names);
    hubs_callback_is_run(result != NULL && count > 0 ? args[0] : NULL);
    return result;
}

static void hubs_timer_is_started(gp_py_t *timer, gp_py_t *callback)
{
    if (callback == NULL || !gp_greenlet_is_sampling())
        return;
    uint64_t begun = gp_hook_cost_begin();
    prof_coro_t *coro = hubs_woken_by(callback);
    gp_py_t *at = coro != NULL ? gp_py.get_attr_of(timer, at_name) : NULL; // of libev: when it is due, CLOCK_MONOTONIC
    if (at != NULL)
        atomic_store_explicit(&coro->ready_ticks, hubs_ticks_at(hubs_number(at)), memory_order_relaxed);
    else if (coro != NULL)
        gp_py.error_clear();
    gp_py.drop(at);
    gp_hook_cost_end(begun, 0);
}

static gp_py_t *hubs_on_timer_start(gp_py_t *timer, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *result = real_timer_start(timer, args, keywords);
    hubs_timer_is_started(timer, result != NULL ? hubs_first_of(args) : NULL);
    return result;
}

static gp_py_t *hubs_on_fast_timer_start(gp_py_t *timer, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names)
{
    gp_py_t *result = fast_timer_start(timer, args, count, names);
    hubs_timer_is_started(timer, result != NULL && count > 0 ? args[0] : NULL);
    return result;
}

static void hubs_look_for_eventlet(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "eventlet.hubs.timer");
    gp_py_t *heap = module != NULL ? gp_py.dict_get(gp_py.module_dict(), "_heapq") : NULL;
    timer_type = heap != NULL ? gp_py.get_attr(module, "Timer") : NULL;
    if (timer_type == NULL)
        return;
    real_pop = (one_t *)(uintptr_t)gp_py_replace_method(gp_py_method(heap, "heappop"), GP_PY_O,
                                                        (void *)(uintptr_t)hubs_on_pop);
    gp_loop_look_hook();
}

static void hubs_look_for_gevent(void)
{
    static const char loop[] = "gevent.libev.corecext";
    if (gp_py.dict_get(gp_py.module_dict(), loop) == NULL)
        return;
    const int flags = GP_PY_VARARGS | GP_PY_KEYWORDS, fast = GP_PY_FASTCALL | GP_PY_KEYWORDS;
    gp_py_method_t *run = gp_py_method_in(loop, "loop", "run_callback"),
                   *start = gp_py_method_in(loop, "timer", "start");
    self_name = gp_py.text("__self__");
    name_name = gp_py.text("__name__");
    at_name = gp_py.text("at");
    real_run_callback =
        (keywords_t *)(uintptr_t)gp_py_replace_method(run, flags, (void *)(uintptr_t)hubs_on_run_callback);
    fast_run_callback =
        (fastcall_t *)(uintptr_t)gp_py_replace_method(run, fast, (void *)(uintptr_t)hubs_on_fast_run_callback);
    real_timer_start =
        (keywords_t *)(uintptr_t)gp_py_replace_method(start, flags, (void *)(uintptr_t)hubs_on_timer_start);
    fast_timer_start =
        (fastcall_t *)(uintptr_t)gp_py_replace_method(start, fast, (void *)(uintptr_t)hubs_on_fast_timer_start);
    static gp_not_known_t fact;
    if ((real_run_callback == NULL && fast_run_callback == NULL) ||
        (real_timer_start == NULL && fast_timer_start == NULL))
        gp_not_known_tell(&fact, "gevent: not known in this version, ready times of its greenlets are missing");
}

void gp_hub_look(void)
{
    gp_py_t *error[3];
    if (timer_type != NULL && self_name != NULL)
        return;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    if (timer_type == NULL)
        hubs_look_for_eventlet();
    if (self_name == NULL)
        hubs_look_for_gevent();
    gp_py.error_restore(error[0], error[1], error[2]);
}
