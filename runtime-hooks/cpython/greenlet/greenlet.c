// SPDX-License-Identifier: MIT
#include "greenlet/greenlet.h"

#include <stdlib.h>
#include <string.h>

#include "coro/hook_time.h"
#include "coro/registry.h"
#include "coro/switch.h"
#include "coro/threads.h"
#include "exact/recorder.h"
#include "greenlet/greenlet_map.h"
#include "greenlet/greenlet_native.h"
#include "greenlet/hubs.h"
#include "greenlet/walk_parked.h"
#include "interpreter/peek_text.h"
#include "interpreter/spawn_site.h"
#include "settings.h"
#include "signal/rest.h"
#include "trace/context.h"

enum { // of the array behind greenlet._C_API; source: greenlet.h
    API_TYPE = 0,
    API_GET_CURRENT = 4,
    API_MAIN = 8,
    API_ACTIVE = 10,
};

typedef gp_py_t *new_t(gp_py_t *type, gp_py_t *args, gp_py_t *keywords);
typedef void dealloc_t(gp_py_t *greenlet);
typedef gp_py_t *varargs_t(gp_py_t *module, gp_py_t *args);

static new_t *real_new;
static dealloc_t *real_dealloc;
static varargs_t *real_settrace, *real_gettrace;
static gp_py_t *(*get_current)(void);
static int (*is_main)(gp_py_t *), (*is_active)(gp_py_t *);
static gp_py_t *tracer; // NULL = greenlet is not hooked
static bool sees;       // switches are seen in greenlet's own functions: nothing is set with settrace()

// Of each thread: is `tracer` set, and which tracer it calls.
static __thread bool tracing __attribute__((tls_model("initial-exec")));
static __thread gp_py_t *other_tracer __attribute__((tls_model("initial-exec")));

// The running greenlet is read at each sample; exact mode needs reports.
static bool is_read(void)
{
    return atomic_load_explicit(&gp_language_reads, memory_order_relaxed) &&
           __atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0;
}

static void add(gp_py_t *greenlet, prof_coro_t *spawner)
{
    bool reads = is_read();
    gp_coro_birth_t birth = {
        .kind = reads ? GP_CORO_POLLED : GP_CORO_ANNOUNCED, .spawner = spawner, .object = (uintptr_t)greenlet};
    birth.spawn_site = spawner != NULL ? gp_cpython_spawn_site() : 0;
    prof_coro_t *coro = gp_coro_new(&birth);
    if (coro != NULL)
        gp_greenlet_put(&(gp_greenlet_t){greenlet, coro, coro->id, greenlet});
}

// The record of a greenlet, or of the task of which it makes a step; {0}: it is its thread, or memory is short. One
// that is older than the hook gets its record now.
static gp_greenlet_t record_in(const gp_step_t *step, gp_py_t *greenlet)
{
    if (step->task != NULL && step->greenlet == greenlet)
        return (gp_greenlet_t){step->task, step->coro, step->coro_id, step->task};
    if (gp_language_running(gp_greenlet_here.state) != NULL && greenlet == (*gp_greenlet_here.state)[0])
        return (gp_greenlet_t){0}; // the thread's main one, without a look into the table
    gp_greenlet_t *found = gp_greenlet_find(greenlet);
    if (found == NULL && !is_main(greenlet)) {
        add(greenlet, NULL);
        found = gp_greenlet_find(greenlet);
    }
    return found != NULL ? *found : (gp_greenlet_t){0};
}

static gp_greenlet_t record_of(gp_py_t *greenlet)
{
    return record_in(&gp_step_here, greenlet);
}

static inline void switch_as(gp_py_t *greenlet, prof_coro_t *coro, uint64_t coro_id)
{
    // No place to go on: its native stack is saved elsewhere while it is parked.
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    gp_hub_before_switch(gp_greenlet_here.last, coro);
    gp_switch_to(coro, coro_id, &park);
    atomic_signal_fence(memory_order_seq_cst);
    // From here on the handler believes what was just reported.
    gp_greenlet_here.last = is_read() ? NULL : greenlet;
}

static void switch_to(gp_py_t *greenlet)
{
    gp_greenlet_t to = record_of(greenlet);
    switch_as(greenlet, to.coro, to.coro_id);
}

static bool is_sampling(void)
{
    return __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) != 0;
}

static void set_real_tracer(gp_py_t *callable)
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

static void stop_tracing(void)
{
    tracing = false;
    set_real_tracer(other_tracer != NULL ? other_tracer : gp_py.none);
    if (other_tracer != NULL)
        gp_py.decref(other_tracer);
    other_tracer = NULL;
}

// A greenlet that is over waits for nothing any more, however long its object is kept.
static void end_if_over(gp_py_t *origin)
{
    if (!is_active(origin) && !is_main(origin))
        gp_coro_retire(gp_greenlet_take(origin));
}

// Called by greenlet on the greenlet that has just been switched to: (event, (origin, target)).
static gp_py_t *on_switch(gp_py_t *unused, gp_py_t **args, ptrdiff_t count)
{
    (void)unused;
    gp_py_t *pair = count == 2 ? args[1] : NULL, *result = gp_py.none;
    gp_py_t *target = pair != NULL ? gp_py.tuple_item(pair, 1) : NULL;
    if (target == NULL)
        return NULL;
    if (other_tracer != NULL) {
        result = gp_py.call(other_tracer, args[0], pair, NULL);
        if (result == NULL) { // greenlet drops the tracer that fails, which is the other one's fate, not ours
            gp_py.decref(other_tracer);
            other_tracer = NULL;
            tracing = false; // set again with the next greenlet that is made here
        }
    } else {
        gp_py.incref(result);
    }
    bool sampling = is_sampling();
    if (sampling) {
        uint64_t begun = gp_hook_time_begin();
        switch_to(target);
        end_if_over(gp_py.tuple_item(pair, 0));
        gp_hook_time_end(begun, 1);
    }
    if (!sampling && tracing && !gp_rest_is_now())
        stop_tracing();
    return result;
}

static void start_tracing(void)
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
    set_real_tracer(tracer);
    tracing = true;
}

// The hint is what the last switch left, or nothing where sampling has begun anew.
static void sync_hint(void)
{
    gp_thread_t *thread = gp_thread_attach();
    gp_py_t *current = get_current();
    if (current == NULL)
        return;
    prof_coro_t *coro = record_of(current).coro;
    if (thread != NULL &&
        (thread->epoch != atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed) ||
         (coro != NULL ? coro : thread->root) != atomic_load_explicit(&thread->current, memory_order_relaxed)))
        switch_to(current);
    else if (!is_read())
        gp_greenlet_here.last = current;
    gp_py.decref(current);
}

// Is the running greenlet tracked for as long as anything samples or watches?
static bool is_entered(void)
{
    bool is_new = gp_greenlet_here.epoch != atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed);
    return sees ? gp_greenlet_here.state != NULL && !(is_new && is_sampling()) : tracing;
}

// Stacks are asked for while nothing samples: any greenlet that is suspended shows where its frames are.
static void learn_from_any(void)
{
    const gp_greenlet_table_t *table = atomic_load_explicit(&gp_greenlet_table, memory_order_relaxed);
    for (size_t i = 0; table != NULL && i <= table->mask && !gp_cpython_parked_is_known(); i++) {
        const gp_greenlet_t *slot = &table->slots[i];
        if (slot->greenlet != NULL && !(gp_coro_rare(slot->coro)->object & GP_CPYTHON_IS_TASK) &&
            is_active((gp_py_t *)slot->greenlet))
            gp_cpython_parked_learn((gp_py_t *)slot->greenlet);
    }
}

bool gp_greenlet_enter(void)
{
    if (tracer == NULL)
        return false;
    if (!gp_py_has_lock())
        return true;
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    if (!gp_cpython_parked_is_known())
        learn_from_any();
    sees = sees && (is_read() || gp_greenlet_see_switches());
    if (sees)
        gp_greenlet_find_state((gp_py_t *)(uintptr_t)gp_greenlet_current());
    else if (!tracing)
        start_tracing();
    if (is_sampling()) {
        gp_greenlet_here.epoch = atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed);
        sync_hint();
    }
    gp_py.error_restore(error[0], error[1], error[2]);
    return true;
}

const void *gp_greenlet_current(void)
{
    gp_py_t *current = tracer != NULL ? get_current() : NULL;
    if (current != NULL)
        gp_py.decref(current); // the running greenlet is not freed
    else if (tracer != NULL)
        gp_py.error_clear();
    return current;
}

gp_greenlet_t gp_greenlet_running(const gp_step_t *step)
{
    gp_py_t *current = (gp_py_t *)gp_greenlet_current();
    if (current != NULL)
        return record_in(step, current);
    return step->task != NULL ? (gp_greenlet_t){step->task, step->coro, step->coro_id, step->task} : (gp_greenlet_t){0};
}

// While nothing samples, hints are not kept: greenlet itself is asked which one spawns.
prof_coro_t *gp_greenlet_spawner(void)
{
    prof_coro_t *running = gp_greenlet_running(&gp_step_here).coro;
    gp_thread_t *thread = running == NULL ? gp_thread_attach() : NULL;
    return thread != NULL ? thread->root : running;
}

static bool is_booked(void)
{
    return is_sampling() && !is_read();
}

// The thread on which a greenlet runs is in its record's `hook_mark`: the number of its block, and one. Of what began
// before that was kept, and of main greenlets, it is told by the main one that its line of parents leads to.
__attribute__((noinline, cold)) static bool leads_here(gp_py_t *greenlet, prof_coro_t *coro)
{
    gp_py_t *error[3], *at = greenlet;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    while (at != NULL && at != gp_py.none && !is_main(at)) {
        at = gp_py.get_attr(at, "parent");
        gp_py.drop(at); // its child keeps it
    }
    gp_py.error_restore(error[0], error[1], error[2]);
    bool is_here = at != NULL && at == gp_greenlet_main();
    if (is_here && coro != NULL && gp_thread_self != NULL)
        coro->hook_mark = gp_thread_self->index + 1;
    return is_here;
}

// Who runs has not been reported: sampling has begun since, or greenlet refused the last switch.
//   suspended: NULL = none is known.
__attribute__((noinline, cold)) static void catch_up(gp_py_t *suspended)
{
    if (!is_entered())
        gp_greenlet_enter();
    else
        sync_hint();
    if (!gp_cpython_parked_is_known() && suspended != NULL)
        gp_cpython_parked_learn(suspended);
}

// What is not in every switch: it is a task's greenlet, or not known yet, or another thread's, which will be refused.
__attribute__((noinline, cold)) static bool find_slowly(gp_py_t *to, gp_greenlet_t *record)
{
    *record = record_of(to);
    bool is_own =
        record->coro != NULL && gp_thread_self != NULL && record->coro->hook_mark == gp_thread_self->index + 1;
    return is_own || leads_here(to, record->coro);
}

static inline bool find_next(gp_py_t *to, prof_coro_t **coro, uint64_t *id)
{
    const gp_thread_t *thread = gp_thread_self;
    bool is_plain = gp_step_here.task == NULL && thread != NULL;
    *coro = NULL;
    *id = 0;
    if (is_plain && to == gp_greenlet_main())
        return true;
    const gp_greenlet_t *found = is_plain ? gp_greenlet_find_fast(to) : NULL;
    if (__builtin_expect(found == NULL || found->coro == NULL || found->coro->hook_mark != thread->index + 1, 0)) {
        gp_greenlet_t record;
        bool is_own = find_slowly(to, &record);
        *coro = record.coro;
        *id = record.coro_id;
        return is_own;
    }
    *coro = found->coro;
    *id = found->coro_id;
    return true;
}

// The frames of what is about to go on are with its greenlet still.
static inline void go_on(gp_py_t *to)
{
    prof_coro_t *coro;
    uint64_t id;
    if (!find_next(to, &coro, &id))
        return;
    gp_step_here.waiting = (uintptr_t)to | GP_STEP_IS_GREENLET;
    atomic_signal_fence(memory_order_seq_cst);
    switch_as(to, coro, id);
    gp_step_here.waiting = 0;
}

// One that is over waits for nothing any more, however long its object is kept.
static void end(gp_py_t *greenlet, bool has_left)
{
    const gp_greenlet_t *found = gp_greenlet_find(greenlet);
    if (found != NULL && !has_left) // what goes on has not begun yet
        gp_coro_ends(found->coro, found->coro_id);
    else if (found != NULL)
        gp_coro_retire(gp_greenlet_take(greenlet));
}

void gp_greenlet_leaving(gp_py_t *from, bool is_over, gp_py_t *to)
{
    if (is_read())
        return;
    uint64_t begun = gp_hook_time_begin();
    bool is_known = from == gp_greenlet_here.last &&
                    gp_greenlet_here.epoch == atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed);
    if (__builtin_expect(!is_known || !gp_cpython_parked_is_known(), 0))
        catch_up(to != from ? to : NULL);
    if (to != NULL && to != from)
        go_on(to);
    if (is_over)
        end(from, to != NULL);
    gp_hook_time_end(begun, 1);
}

void gp_greenlet_starting(gp_py_t *to)
{
    if (!is_booked())
        return;
    uint64_t begun = gp_hook_time_begin();
    gp_greenlet_t record = record_of(to);
    if (record.coro != NULL && gp_thread_self != NULL)
        record.coro->hook_mark = gp_thread_self->index + 1;
    gp_step_here.waiting = GP_STEP_HAS_NOT_BEGUN; // the frames that are there belong to its starter
    atomic_signal_fence(memory_order_seq_cst);
    switch_as(to, record.coro, record.coro_id);
    gp_step_here.waiting = 0;
    gp_hook_time_end(begun, 1);
}

void gp_greenlet_switched(void)
{
    if (!is_entered())
        gp_greenlet_enter();
    gp_py_t *now = (gp_py_t *)(uintptr_t)gp_language_running(gp_greenlet_here.state);
    if (now != NULL && now != gp_greenlet_here.last && is_booked())
        switch_to(now);
}

static void run_as(const gp_greenlet_t *record, uintptr_t waiting)
{
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    gp_greenlet_put(record);
    gp_step_here.waiting = waiting;
    if (is_booked())
        gp_switch_to(record->coro, record->coro_id, &park);
    gp_step_here.waiting = 0;
}

bool gp_greenlet_lend(const gp_greenlet_t *record, gp_greenlet_t *before)
{
    gp_py_t *current = (gp_py_t *)(uintptr_t)gp_greenlet_current();
    if (current == NULL || is_main(current) || (gp_step_here.task != NULL && gp_step_here.greenlet == current))
        return false;
    *before = record_of(current);
    gp_greenlet_t lent = *record;
    lent.greenlet = before->greenlet = current;
    gp_coro_rare(lent.coro)->object = (uintptr_t)current; // for a census while it waits
    run_as(&lent, GP_STEP_HAS_NOT_BEGUN);
    return true;
}

void gp_greenlet_give_back(const gp_greenlet_t *before)
{
    run_as(before, 0);
}

// One that is made while a recording rests gets its record where it is met, unless it inherits anything.
static bool is_left_for_later(void)
{
    return gp_rest_is_now() && !atomic_load_explicit(&gp_trace_is_used, memory_order_relaxed);
}

static gp_py_t *on_new(gp_py_t *type, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *greenlet = real_new(type, args, keywords);
    if (greenlet == NULL || atomic_load_explicit(&gp_language_is_left, memory_order_relaxed) || is_left_for_later())
        return greenlet;
    uint64_t begun = gp_hook_time_begin();
    static gp_py_t *last_type;
    if (type != last_type) { // a library's own kind, the first of which comes before any is woken
        last_type = type;
        gp_hub_look();
    }
    if (is_sampling() && !is_entered())
        gp_greenlet_enter();
    add(greenlet, gp_hub_is_one(type, args) ? NULL : gp_greenlet_spawner());
    gp_hook_time_end(begun, 0);
    return greenlet;
}

// One that has begun and is not over is killed by its deallocation: it is switched to once more, and may even live on.
static void on_dealloc(gp_py_t *greenlet)
{
    uint64_t references = 0;
    if (is_left_for_later() && gp_greenlet_find(greenlet) == NULL) {
        real_dealloc(greenlet);
        return;
    }
    if (!is_active(greenlet)) {
        uint64_t begun = gp_hook_time_begin();
        gp_coro_retire(gp_greenlet_take(greenlet));
        gp_hook_time_end(begun, 0);
        real_dealloc(greenlet);
        return;
    }
    real_dealloc(greenlet);
    if (!gp_peek((uintptr_t)greenlet, &references, sizeof(references)) || references == 0)
        gp_coro_retire(gp_greenlet_take(greenlet));
}

static gp_py_t *settrace(gp_py_t *module, gp_py_t *args)
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

static gp_py_t *gettrace(gp_py_t *module, gp_py_t *args)
{
    if (!tracing)
        return real_gettrace(module, args);
    gp_py_t *now = other_tracer != NULL ? other_tracer : gp_py.none;
    gp_py.incref(now);
    return now;
}

// Types that were derived before have a copy of tp_new.
static void replace_new(gp_py_t *type)
{
    void **slot = gp_py_slot(type, GP_PY_TYPE_NEW);
    if (*slot != (void *)(uintptr_t)real_new)
        return;
    *slot = (void *)(uintptr_t)on_new;
    gp_py_t *derived = gp_py.call_method(type, "__subclasses__", NULL);
    for (ptrdiff_t i = 0; derived != NULL && i < gp_py.list_size(derived); i++)
        replace_new(gp_py.list_item(derived, i));
    if (derived != NULL)
        gp_py.decref(derived);
    else
        gp_py.error_clear();
}

// Put `mine` into the definition of a function of the module; returns what was there, NULL where it is of another kind.
static varargs_t *replace_function(gp_py_t *module, const char *name, int flags, varargs_t *mine)
{
    gp_py_method_t *method = gp_py_method(module, name);
    if (method == NULL || method->flags != flags)
        return NULL;
    varargs_t *before = (varargs_t *)(uintptr_t)method->function;
    method->function = (void *)(uintptr_t)mine;
    return before;
}

// Have switches seen in greenlet's own functions. GREENPROF_GREENLETS=trace: not; =read: the running one is read at
// each sample.
static bool see_switches(gp_py_t *type)
{
    gp_py_t *other = gp_py.call(type, NULL), *current = get_current();
    gp_py_t *main = other != NULL ? gp_py.get_attr(other, "parent") : NULL;
    while (main != NULL && !is_main(main)) {
        gp_py_t *inner = main;
        main = gp_py.get_attr(inner, "parent");
        gp_py.decref(inner);
    }
    gp_greenlet_find_state(current);
    bool done = main != NULL && gp_greenlet_here.state != NULL && !gp_setting_is(GP_SETTING_GREENLETS, "trace") &&
                gp_greenlet_find_switch((const void *)(uintptr_t)get_current, main, other);
    if (done && gp_setting_is(GP_SETTING_GREENLETS, "read"))
        atomic_store_explicit(&gp_language_reads, true, memory_order_relaxed);
    gp_py_t *const made[] = {other, current, main};
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        if (made[i] != NULL)
            gp_py.decref(made[i]);
    gp_py.error_clear();
    return done;
}

static void **find_api(gp_py_t *module)
{
    gp_py_t *capsule = gp_py.get_attr(module, "_C_API");
    void **api = capsule != NULL ? gp_py.capsule_pointer(capsule, "greenlet._C_API") : NULL;
    if (capsule != NULL)
        gp_py.decref(capsule);
    return api;
}

static void hook(gp_py_t *module)
{
    static gp_py_method_t method = {"greenprof", NULL, GP_PY_FASTCALL, NULL};
    method.function = (void *)(uintptr_t)on_switch;
    void **api = find_api(module);
    gp_py_t *callable = api != NULL ? gp_py.function_new(&method, NULL, NULL) : NULL;
    if (callable == NULL)
        return;
    get_current = (gp_py_t * (*)(void))(uintptr_t)api[API_GET_CURRENT];
    is_main = (int (*)(gp_py_t *))(uintptr_t)api[API_MAIN];
    is_active = (int (*)(gp_py_t *))(uintptr_t)api[API_ACTIVE];
    real_settrace = replace_function(module, "settrace", GP_PY_VARARGS, settrace);
    real_gettrace = replace_function(module, "gettrace", GP_PY_NOARGS, gettrace);
    if (real_settrace == NULL || real_gettrace == NULL)
        return;
    gp_py_t *type = api[API_TYPE];
    sees = see_switches(type);
    void **dealloc = gp_py_slot(type, GP_PY_TYPE_DEALLOC);
    real_dealloc = (dealloc_t *)(uintptr_t)*dealloc;
    *dealloc = (void *)(uintptr_t)on_dealloc;
    real_new = (new_t *)(uintptr_t)*gp_py_slot(type, GP_PY_TYPE_NEW);
    replace_new(type);
    gp_greenlet_mark_bootstrap(api[API_GET_CURRENT]);
    tracer = callable;
    if (gp_step_here.task != NULL) // a task has imported it
        gp_step_here.greenlet = gp_greenlet_current();
}

void gp_greenlet_hook(gp_py_t *module)
{
    gp_py_t *error[3];
    if (tracer != NULL)
        return;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    hook(module);
    gp_py.error_restore(error[0], error[1], error[2]);
}

void gp_greenlet_look(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "greenlet._greenlet");
    if (module != NULL)
        gp_greenlet_hook(module);
}
