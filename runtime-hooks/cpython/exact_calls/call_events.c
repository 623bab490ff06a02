// SPDX-License-Identifier: MIT
#include "exact_calls/call_events.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "exact/exact_event.h"
#include "exact/recorder.h"
#include "greenlet/greenlet_native.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/frame_walk.h"
#include "interpreter/function_sites.h"

enum { // of an event; source: Include/cpython/pystate.h
    CALL = 0,
    RETURN = 3,
    C_CALL = 4,
    C_EXCEPTION = 5,
    C_RETURN = 6,
};

enum {
    FRAME_OF_OBJECT = 24,        // PyFrameObject.f_frame
    FUNCTION_OBJECT_OFFSET = 16, // PyThreadState.c_profileobj, from c_profilefunc
    STATE_BYTES = 512,           // of PyThreadState, those in which they are
    VERSION_OF_MONITORING = 0x030c,
};

typedef int event_t(gp_py_t *object, void *frame, int what, gp_py_t *argument);

typedef struct other { // the profiler of a thread that is called by ours
    struct other *next;
    void *thread;
    event_t *call;
    gp_py_t *object;
} other_t;

static int (*set_profile)(void *thread, event_t *, gp_py_t *);
static void *(*interpreter)(void), *(*thread_head)(void *), *(*thread_next)(void *);
static other_t *others; // mostly none
static bool is_everywhere;
static size_t code_of_frame;    // where a frame has its code object
static size_t profile_of_state; // where a PyThreadState has c_profilefunc; 0 = not known yet

static __thread bool installed __attribute__((tls_model("initial-exec")));
static __thread unsigned calls_for_others __attribute__((tls_model("initial-exec")));
static __thread bool was_installed __attribute__((tls_model("initial-exec"))); // before the first of those
static __thread uint64_t entered __attribute__((tls_model("initial-exec")));   // gp_exact_epoch

// CPython's callbacks: on a thread without greenlets, with them, and where another profiler is called as well.
static event_t call_events_on_event, call_events_on_event_greenlets, call_events_on_event_beside;

static void *call_events_this_thread(void)
{
    return gp_cpython_runtime.thread_state();
}

static event_t **call_events_function_at(void *thread)
{
    return (event_t **)(void *)((char *)thread + profile_of_state);
}

static event_t *call_events_function_of(void *thread)
{
    return *call_events_function_at(thread);
}

static gp_py_t *call_events_argument_of(void *thread)
{
    return *(gp_py_t **)(void *)((char *)thread + profile_of_state + FUNCTION_OBJECT_OFFSET);
}

static void call_events_set(void *thread, event_t *function, gp_py_t *object)
{
    if (set_profile(thread, function, object) < 0)
        gp_py.error_clear();
}

static other_t **call_events_link_of(const void *thread)
{
    other_t **link = &others;
    while (*link != NULL && (*link)->thread != thread)
        link = &(*link)->next;
    return link;
}

static other_t *call_events_take_other(const void *thread)
{
    other_t **link = call_events_link_of(thread), *other = *link;
    if (other != NULL)
        *link = other->next;
    return other;
}

static void call_events_free_other(other_t *other)
{
    if (other != NULL)
        gp_py.drop(other->object);
    free(other);
}

static bool call_events_is_ours(void *thread)
{
    event_t *function = call_events_function_of(thread);
    return function == call_events_on_event || function == call_events_on_event_greenlets ||
           function == call_events_on_event_beside;
}

// The calling thread may have got greenlets. Its first event since then goes the slow way.
static void call_events_look_for_greenlets(void)
{
    event_t **function = call_events_function_at(call_events_this_thread());
    if (*function == call_events_on_event && gp_greenlet_here.state != NULL)
        *function = call_events_on_event_greenlets;
}

static void call_events_precede_on(void *thread)
{
    if (call_events_is_ours(thread))
        return;
    call_events_free_other(call_events_take_other(thread)); // of another thread, with its state at this address
    other_t *other = call_events_function_of(thread) != NULL ? malloc(sizeof(*other)) : NULL;
    if (other != NULL) {
        *other = (other_t){others, thread, call_events_function_of(thread), call_events_argument_of(thread)};
        if (other->object != NULL)
            gp_py.incref(other->object);
        others = other;
    }
    call_events_set(thread, other != NULL ? call_events_on_event_beside : call_events_on_event, NULL);
}

static void call_events_precede(void)
{
    call_events_precede_on(call_events_this_thread());
    call_events_look_for_greenlets();
    installed = true;
}

static void call_events_give_back(void)
{
    void *thread = call_events_this_thread();
    other_t *other = call_events_take_other(thread);
    installed = false;
    if (call_events_is_ours(thread))
        call_events_set(thread, other != NULL ? other->call : NULL, other != NULL ? other->object : NULL);
    call_events_free_other(other);
}

// A profile function in Python that raises is taken off by CPython, and ours with it.
static int call_events_other(void *frame, int what, gp_py_t *argument)
{
    void *thread = call_events_this_thread();
    other_t *other = *call_events_link_of(thread);
    gp_py_t *error[3], *object = other != NULL ? other->object : NULL;
    if (other == NULL)
        return 0;
    if (object != NULL)
        gp_py.incref(object);
    int result = other->call(object, frame, what, argument);
    gp_py.drop(object);
    if (result < 0 && !call_events_is_ours(thread)) {
        gp_py.error_fetch(&error[0], &error[1], &error[2]);
        call_events_free_other(call_events_take_other(thread));
        call_events_precede();
        gp_py.error_restore(error[0], error[1], error[2]);
    }
    return result;
}

// Does another greenlet run than was reported last?
static FAST bool call_events_is_unreported(void)
{
    const void *now = gp_language_running(gp_greenlet_here.state);
    return now != gp_greenlet_here.last && now != NULL;
}

static __attribute__((noinline, cold)) void call_events_count_slowly(const gp_exact_site_t *site, bool begins,
                                                                     uint64_t now)
{
    uint64_t epoch = atomic_load_explicit(&gp_exact_epoch, memory_order_acquire);
    call_events_look_for_greenlets();
    if (epoch != entered || call_events_is_unreported())
        now = 0;          // the slow way takes a while
    if (epoch != entered) // a recorder has started or stopped
        atomic_load_explicit(&gp_language, memory_order_acquire)->enter();
    else if (now == 0)
        gp_greenlet_switched();
    entered = epoch;
    if (begins)
        gp_exact_enter(site, now);
    else
        gp_exact_leave(site, now);
}

static inline const void *call_events_code_of(void *frame)
{
    char *inner = *(char **)(void *)((char *)frame + FRAME_OF_OBJECT);
    return (void *)(*(uintptr_t *)(void *)(inner + code_of_frame) & // NOLINT(performance-no-int-to-ptr)
                    ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS);
}

// The object of an event: a code object, or the definition of a built-in function; NULL: nothing to be counted.
static const void *call_events_object_of(void *frame, int what, gp_py_t *argument)
{
    if (what == CALL || what == RETURN)
        return call_events_code_of(frame);
    if (what < C_CALL || what > C_RETURN)
        return NULL;
    gp_py_t *type = gp_py_type(argument);
    return type == gp_py.builtin_type || gp_py.is_subtype(type, gp_py.builtin_type) ? gp_py_definition(argument) : NULL;
}

// The next ones have their parameters in the registers in which call_events_on_event() has them.

static __attribute__((noinline)) int call_events_take_slowly(uint64_t now, void *frame, int what, gp_py_t *argument)
{
    if (UNLIKELY(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0)) {
        int result = others != NULL ? call_events_other(frame, what, argument) : 0;
        if (result == 0) // an error that is set must stay
            call_events_give_back();
        return result;
    }
    const void *object = call_events_object_of(frame, what, argument);
    const gp_exact_site_t *site = object != NULL ? gp_function_site_known(object) : NULL;
    if (object != NULL && site == NULL) {
        site = gp_function_site_of(object, what >= C_CALL ? argument : NULL);
        now = 0; // that took a while
    }
    if (site != NULL)
        call_events_count_slowly(site, what == CALL || what == C_CALL, now);
    return others != NULL ? call_events_other(frame, what, argument) : 0;
}

// Where the caller called another function before.
static __attribute__((noinline)) int call_events_enter_begun(gp_exact_stack_t *stack, void *frame, int what,
                                                             gp_py_t *argument, const void *object)
{
    return LIKELY(gp_exact_enter_begun(stack, object, gp_function_site_known))
               ? 0
               : call_events_take_slowly(0, frame, what, argument);
}

static FAST int call_events_enter(const arrival_t *at, void *frame, int what, gp_py_t *argument, const void *object)
{
    gp_exact_stack_t *begun = NULL;
    if (LIKELY(gp_exact_enter_fast(object, at, &begun)))
        return 0;
    return begun != NULL ? call_events_enter_begun(begun, frame, what, argument, object)
                         : call_events_take_slowly(at->now, frame, what, argument);
}

static FAST int call_events_leave(const arrival_t *at, void *frame, int what, gp_py_t *argument, const void *object)
{
    return LIKELY(gp_exact_leave_fast(object, at)) ? 0 : call_events_take_slowly(at->now, frame, what, argument);
}

// Each branch ends in a tail call, which needs no room of its own. An argument that is no built-in function is looked
// at only in the slow case.
static FAST int call_events_take(const arrival_t *at, void *frame, int what, gp_py_t *argument)
{
    if (what == CALL)
        return call_events_enter(at, frame, CALL, argument, call_events_code_of(frame));
    if (what == RETURN)
        return call_events_leave(at, frame, RETURN, argument, call_events_code_of(frame));
    if (what == C_CALL)
        return call_events_enter(at, frame, C_CALL, argument, gp_py_definition(argument));
    if (LIKELY(what == C_RETURN))
        return call_events_leave(at, frame, C_RETURN, argument, gp_py_definition(argument));
    return call_events_take_slowly(at->now, frame, what, argument);
}

static int call_events_on_event(gp_py_t *object, void *frame, int what, gp_py_t *argument)
{
    (void)object;
    const arrival_t at = arrive();
    return call_events_take(&at, frame, what, argument);
}

static int call_events_on_event_greenlets(gp_py_t *object, void *frame, int what, gp_py_t *argument)
{
    (void)object;
    const arrival_t at = arrive();
    return LIKELY(!call_events_is_unreported()) ? call_events_take(&at, frame, what, argument)
                                                : call_events_take_slowly(at.now, frame, what, argument);
}

static int call_events_on_event_beside(gp_py_t *object, void *frame, int what, gp_py_t *argument)
{
    (void)object;
    return call_events_take_slowly(gp_ticks_counter(), frame, what, argument);
}

// --- Other profilers' own calls

typedef gp_py_t *call_t(gp_py_t *self, gp_py_t *first, gp_py_t *second); // functions with fewer do not look at the last

enum { SETPROFILE, GETPROFILE, ENABLE, DISABLE, START_THREAD, START_JOINABLE, WRAPPED };
static call_t *real[WRAPPED];

// Let the call find the thread as it would be without us.
static gp_py_t *call_events_step_aside(int which, gp_py_t *self, gp_py_t *first, gp_py_t *second)
{
    gp_py_t *error[3];
    bool was_here = call_events_is_ours(call_events_this_thread());
    if (was_here)
        call_events_give_back();
    gp_py_t *result = real[which](self, first, second);
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    if (was_here && __atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0)
        call_events_precede();
    gp_py.error_restore(error[0], error[1], error[2]);
    return result;
}

static gp_py_t *call_events_setprofile(gp_py_t *self, gp_py_t *first, gp_py_t *second)
{
    return call_events_step_aside(SETPROFILE, self, first, second);
}

static gp_py_t *call_events_getprofile(gp_py_t *self, gp_py_t *first, gp_py_t *second)
{
    return call_events_step_aside(GETPROFILE, self, first, second);
}

static gp_py_t *call_events_enable(gp_py_t *self, gp_py_t *first, gp_py_t *second)
{
    return call_events_step_aside(ENABLE, self, first, second);
}

static gp_py_t *call_events_disable(gp_py_t *self, gp_py_t *first, gp_py_t *second)
{
    return call_events_step_aside(DISABLE, self, first, second);
}

static void call_events_wrap(int which, gp_py_method_t *method, int flags, call_t *mine)
{
    if (method == NULL || method->flags != flags || real[which] != NULL)
        return;
    real[which] = (call_t *)(uintptr_t)method->function;
    method->function = (void *)(uintptr_t)mine;
}

static void call_events_wrap_sys(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "sys");
    if (module == NULL || real[SETPROFILE] != NULL)
        return;
    call_events_wrap(SETPROFILE, gp_py_method(module, "setprofile"), GP_PY_O, call_events_setprofile);
    call_events_wrap(GETPROFILE, gp_py_method(module, "getprofile"), GP_PY_NOARGS, call_events_getprofile);
}

static void call_events_wrap_cprofile(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_lsprof");
    if (module == NULL || real[ENABLE] != NULL || gp_cpython_runtime.layout->version >= VERSION_OF_MONITORING)
        return;
    gp_py_t *type = gp_py.get_attr(module, "Profiler");
    if (type != NULL) {
        call_events_wrap(ENABLE, gp_py_type_method(type, "enable"), GP_PY_VARARGS | GP_PY_KEYWORDS, call_events_enable);
        call_events_wrap(DISABLE, gp_py_type_method(type, "disable"), GP_PY_NOARGS, call_events_disable);
    }
    gp_py.drop(type);
    gp_py.error_clear();
}

// --- Threads

static bool call_events_is_active(void)
{
    return profile_of_state != 0 && __atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0;
}

static gp_py_t *call_events_run_thread(gp_py_t *function, gp_py_t *args, gp_py_t *keywords)
{
    if (call_events_is_active())
        call_events_precede();
    return gp_py.call_with(function, args, keywords);
}

// The arguments for a function that starts a thread, to have the thread's events from the first on. New reference, or
// NULL: as they are.
static gp_py_t *call_events_for_thread(gp_py_t *args, ptrdiff_t count_min)
{
    static gp_py_method_t definition = {"greenprof", NULL, GP_PY_VARARGS | GP_PY_KEYWORDS, NULL};
    ptrdiff_t count = gp_py.tuple_size(args);
    if (!call_events_is_active() || !is_everywhere || count < count_min || count > 3)
        return NULL;
    definition.function = (void *)(uintptr_t)call_events_run_thread;
    gp_py_t *function = gp_py.function_new(&definition, gp_py.tuple_item(args, 0), NULL), *copy = NULL;
    if (function != NULL)
        copy = gp_py.tuple_pack(count, function, count > 1 ? gp_py.tuple_item(args, 1) : NULL,
                                count > 2 ? gp_py.tuple_item(args, 2) : NULL);
    gp_py.drop(function);
    if (copy == NULL)
        gp_py.error_clear();
    return copy;
}

static gp_py_t *call_events_start_thread(gp_py_t *self, gp_py_t *args, gp_py_t *second)
{
    gp_py_t *mine = call_events_for_thread(args, 2);
    gp_py_t *result = real[START_THREAD](self, mine != NULL ? mine : args, second);
    gp_py.drop(mine);
    return result;
}

static gp_py_t *call_events_start_joinable(gp_py_t *self, gp_py_t *args, gp_py_t *names)
{
    gp_py_t *mine = call_events_for_thread(args, 1);
    gp_py_t *result = real[START_JOINABLE](self, mine != NULL ? mine : args, names);
    gp_py.drop(mine);
    return result;
}

static void call_events_wrap_threads(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_thread");
    if (module == NULL || real[START_THREAD] != NULL)
        return;
    call_events_wrap(START_THREAD, gp_py_method(module, "start_new_thread"), GP_PY_VARARGS, call_events_start_thread);
    // threading's function from 3.13 on.
    call_events_wrap(START_JOINABLE, gp_py_method(module, "start_joinable_thread"), GP_PY_VARARGS | GP_PY_KEYWORDS,
                     call_events_start_joinable);
}

void gp_call_events_look(void)
{
    if (__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0)
        return;
    call_events_wrap_sys();
    call_events_wrap_cprofile();
    call_events_wrap_threads();
}

// Where a state has its profiler is not published: ours is put there for a moment and looked for.
static size_t call_events_find_profile(void *thread)
{
    uintptr_t before[STATE_BYTES / sizeof(uintptr_t)];
    gp_py_t *sys = gp_py.dict_get(gp_py.module_dict(), "sys"), *object = NULL;
    object = sys != NULL ? gp_py.call_method(sys, "getprofile", NULL) : NULL; // kept alive meanwhile
    size_t at = 1, words = sizeof(before) / sizeof(before[0]);
    memcpy(before, thread, sizeof(before));
    call_events_set(thread, call_events_on_event, NULL);
    while (at < words && ((event_t **)thread)[at] != call_events_on_event)
        at++;
    uintptr_t former = at < words ? before[at] : 0;
    call_events_set(thread, (event_t *)former, former != 0 && object != gp_py.none ? object : NULL); // NOLINT
    gp_py.drop(object);
    return at < words ? at * sizeof(before[0]) : 0;
}

static bool call_events_find_calls(void)
{
    if (set_profile != NULL)
        return profile_of_state != 0;
    interpreter = (void *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "PyInterpreterState_Get");
    thread_head = (void *(*)(void *))(uintptr_t)dlsym(RTLD_DEFAULT, "PyInterpreterState_ThreadHead");
    thread_next = (void *(*)(void *))(uintptr_t)dlsym(RTLD_DEFAULT, "PyThreadState_Next");
    void *found = dlsym(RTLD_DEFAULT, "_PyEval_SetProfile");
    if (interpreter == NULL || thread_head == NULL || thread_next == NULL)
        return false;
    code_of_frame = gp_cpython_runtime.layout->frame_code;
    set_profile = (int (*)(void *, event_t *, gp_py_t *))(uintptr_t)found;
    profile_of_state = set_profile != NULL ? call_events_find_profile(call_events_this_thread()) : 0;
    return profile_of_state != 0;
}

void gp_call_events_start(bool everywhere)
{
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    if (!call_events_find_calls()) {
        gp_py.error_restore(error[0], error[1], error[2]);
        return;
    }
    gp_call_events_look();
    call_events_precede();
    is_everywhere |= everywhere;
    for (void *thread = everywhere ? thread_head(interpreter()) : NULL; thread != NULL; thread = thread_next(thread))
        call_events_precede_on(thread);
    gp_py.error_restore(error[0], error[1], error[2]);
}

void gp_call_events_enter_call(void)
{
    if (calls_for_others++ == 0)
        was_installed = installed;
    if (call_events_is_active())
        call_events_precede();
}

void gp_call_events_leave_call(void)
{
    if (--calls_for_others == 0 && installed && !was_installed && !is_everywhere)
        call_events_give_back();
}

bool gp_call_events_are_taken(void)
{
    return installed && !call_events_is_ours(call_events_this_thread());
}
