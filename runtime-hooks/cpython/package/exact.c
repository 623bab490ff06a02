#define Py_BUILD_CORE 1 // the code of a frame, without a reference taken and dropped at every call
#include "exact.h"

#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <internal/pycore_ceval.h> // _PyEval_SetProfile()
#endif
#include <stdlib.h>

#include "exact_others.h"
#include "exact_profile.h"
#include "exact_stack.h"
#include "profile/snapshot.h"

// A green thread, or a thread's own stack: in which profiles it is.
typedef struct context {
    const void *key;      // the greenlet, or the thread state of a thread's own
    struct context *next; // in its bucket
    unsigned generation;  // of `running` when the broad profiles were last looked at
    size_t count, room;
    exact_stack_t **stacks;
} context_t;

enum { BUCKETS = 4096 };

#if PY_VERSION_HEX >= 0x030d0000
#define CODE_OF(frame) ((frame)->f_frame->f_executable)
#else
#define CODE_OF(frame) ((frame)->f_frame->f_code)
#endif

static context_t *buckets[BUCKETS];
static exact_t *running; // profiles
static unsigned generation;

static __thread struct {
    context_t *context;   // of what runs on this thread
    unsigned epoch;       // of `contexts_epoch` for which that holds
} here __attribute__((tls_model("initial-exec")));
static unsigned contexts_epoch = 1; // raised when contexts are thrown away

static context_t **bucket_of(const void *key)
{
    return &buckets[((uintptr_t)key >> 4) * 0x9e3779b97f4a7c15ull >> 52];
}

static context_t *find_context(const void *key)
{
    context_t *context = *bucket_of(key);
    while (context != NULL && context->key != key)
        context = context->next;
    return context;
}

static context_t *make_context(const void *key)
{
    context_t *context = find_context(key);
    if (context != NULL || (context = calloc(1, sizeof(*context))) == NULL)
        return context;
    context->key = key;
    context->next = *bucket_of(key);
    *bucket_of(key) = context;
    return context;
}

static exact_stack_t *stack_in(const context_t *context, const exact_t *profile)
{
    for (size_t i = 0; i < context->count; i++) {
        if (context->stacks[i]->profile == profile)
            return context->stacks[i];
    }
    return NULL;
}

// Let a green thread be in a profile, paused.
static exact_stack_t *join(context_t *context, exact_t *profile, uint64_t now)
{
    exact_stack_t *stack = stack_in(context, profile);
    if (stack != NULL)
        return stack;
    if (context->count == context->room) {
        size_t room = context->room > 0 ? context->room * 2 : 2;
        exact_stack_t **grown = realloc(context->stacks, room * sizeof(*grown));
        if (grown == NULL)
            return NULL;
        context->stacks = grown;
        context->room = room;
    }
    stack = calloc(1, sizeof(*stack));
    if (stack == NULL)
        return NULL;
    stack->profile = profile;
    stack->paused_at = now;
    stack->next = profile->stacks;
    if (stack->next != NULL)
        stack->next->prev = stack;
    profile->stacks = stack;
    return context->stacks[context->count++] = stack;
}

// Profiles of this thread and of the process have it without asking.
static void join_broad(context_t *context, uint64_t now)
{
    if (context->generation == generation)
        return;
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    for (exact_t *profile = running; profile != NULL; profile = profile->next) {
        if (profile->scope == EXACT_PROCESS || (profile->scope == EXACT_THREAD && profile->thread == thread))
            join(context, profile, now);
    }
    context->generation = generation;
}

static context_t *current(void)
{
    return here.epoch == contexts_epoch ? here.context : NULL;
}

static void enter(context_t *context, uint64_t now)
{
    context_t *before = current();
    for (size_t i = 0; before != NULL && before != context && i < before->count; i++)
        exact_stack_pause(before->stacks[i], now);
    here.context = context;
    here.epoch = contexts_epoch;
    if (context == NULL)
        return;
    join_broad(context, now);
    for (size_t i = 0; i < context->count; i++)
        exact_stack_resume(context->stacks[i], now);
}

static void leave_stack(exact_stack_t *stack, uint64_t now)
{
    exact_stack_flush(stack, now);
    if (stack->prev != NULL)
        stack->prev->next = stack->next;
    else
        stack->profile->stacks = stack->next;
    if (stack->next != NULL)
        stack->next->prev = stack->prev;
    free(stack->entries);
    free(stack);
}

static void forget(const void *key)
{
    context_t **link = bucket_of(key);
    while (*link != NULL && (*link)->key != key)
        link = &(*link)->next;
    context_t *context = *link;
    if (context == NULL)
        return;
    *link = context->next;
    uint64_t now = exact_ticks();
    for (size_t i = 0; i < context->count; i++)
        leave_stack(context->stacks[i], now);
    if (here.context == context)
        here.context = NULL;
    free(context->stacks);
    free(context);
}

// A green thread is in the profiles of the one that makes it.
static void on_made(const void *greenlet, uint64_t now)
{
    context_t *maker = current(), *context = make_context(greenlet);
    for (size_t i = 0; context != NULL && maker != NULL && i < maker->count; i++)
        join(context, maker->stacks[i]->profile, now);
}

static void on_coroutine(gp_language_event_t event, void *greenlet)
{
    uint64_t now = exact_ticks();
    if (event == GP_LANGUAGE_GONE)
        forget(greenlet);
    else if (event == GP_LANGUAGE_MADE)
        on_made(greenlet, now);
    else
        enter(make_context(greenlet != NULL ? greenlet : (void *)PyThreadState_Get()), now);
}

static context_t *enter_unknown(uint64_t now)
{
    enter(make_context(PyThreadState_Get()), now);
    return current();
}

static inline int count(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
    (void)unused;
    uint64_t now = exact_ticks();
    context_t *context = current();
    if (context == NULL && (context = enter_unknown(now)) == NULL)
        return 0;
    PyObject *object = argument;
    const void *key;
    if (what == PyTrace_CALL || what == PyTrace_RETURN) {
        key = object = (PyObject *)CODE_OF(frame);
    } else if (what >= PyTrace_C_CALL && what <= PyTrace_C_RETURN && PyCFunction_Check(argument)) {
        key = ((PyCFunctionObject *)argument)->m_ml;
    } else {
        return 0;
    }
    bool is_call = what == PyTrace_CALL || what == PyTrace_C_CALL;
    for (size_t i = 0; i < context->count; i++) {
        if (is_call)
            exact_stack_push(context->stacks[i], now, key, object);
        else
            exact_stack_pop(context->stacks[i], now, key);
    }
    return 0;
}

static int on_call(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
    count(unused, frame, what, argument);
    return exact_others != NULL ? exact_others_call(frame, what, argument) : 0;
}

void exact_enter_thread(void)
{
    if (running != NULL && exact_others_precede() < 0)
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
    if (running == NULL)
        prof_core_interface()->language_watch(on_coroutine);
    uint64_t now = exact_ticks();
    profile->running = true;
    profile->thread = PyThreadState_GetID(PyThreadState_Get());
    profile->next = running;
    running = profile;
    generation++;
    if (current() == NULL)
        enter(make_context(PyThreadState_Get()), now);
    else
        join_broad(current(), now);
    context_t *context = current();
    exact_stack_t *stack = context != NULL ? join(context, profile, now) : NULL;
    if (stack == NULL) {
        exact_stop(profile);
        PyErr_NoMemory();
        return -1;
    }
    exact_stack_resume(stack, now);
    return profile->scope == EXACT_PROCESS ? each_thread(true) : 0;
}

static void leave_contexts(exact_t *profile, uint64_t now)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (context_t *context = buckets[i]; context != NULL; context = context->next) {
            exact_stack_t *stack = stack_in(context, profile);
            for (size_t j = 0; stack != NULL && j < context->count; j++) {
                if (context->stacks[j] == stack)
                    context->stacks[j] = context->stacks[--context->count];
            }
            if (stack != NULL)
                leave_stack(stack, now);
        }
    }
}

static void forget_contexts(void)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        while (buckets[i] != NULL)
            forget(buckets[i]->key);
    }
    contexts_epoch++;
}

int exact_stop(exact_t *profile)
{
    uint64_t now = exact_ticks();
    exact_t **link = &running;
    while (*link != NULL && *link != profile)
        link = &(*link)->next;
    if (*link == NULL)
        return 0;
    *link = profile->next;
    profile->running = false;
    PyThreadState *thread = PyThreadState_Get();
    profile->was_taken |= thread->c_profilefunc != on_call && PyThreadState_GetID(thread) == profile->thread;
    leave_contexts(profile, now);
    if (running != NULL)
        return 0;
    prof_core_interface()->language_watch(NULL);
    forget_contexts();
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
