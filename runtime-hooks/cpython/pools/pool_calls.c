// SPDX-License-Identifier: MIT
#include "pools/pool_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/pools.h"
#include "coro/coro_name.h"
#include "coro/registry.h"
#include "exact_calls/call_events.h"
#include "greenlet/greenlet_native.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/api.h"
#include "interpreter/spawn_site.h"
#include "interpreter/task_step.h"
#include "not_known.h"
#include "pools/pool_names.h"
#include "pools/queue_calls.h"
#include "profile/profile.h"
#include "signal/ledger_edges.h"
#include "trace/span.h"
#include "trace/span_past.h"

static const char name[] = "greenprof"; // of our functions and capsules

typedef struct call {  // handed over, and not made yet
    prof_coro_t *coro; // NULL = it has been made
    uint64_t id;
    uint64_t spawn; // the id of the span at which its thread was started; 0 = it is no thread of a request
    char thread[GP_CORO_NAME_SIZE];
} call_t;

typedef struct place { // where a call is made
    gp_task_step_t outer;
    gp_greenlet_t before;
    bool is_lent;
} place_t;

static bool pool_calls_is_wanted(void)
{
    return __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED);
}

// Is there anything to be carried to the calling thread, or for it to leave, or a pool that is watched?
static bool pool_calls_matters(const prof_coro_t *coro)
{
    return gp_coro_rare(coro)->pool != 0 || gp_greenlet_running(&gp_step_here).coro != NULL ||
           atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed) != NULL ||
           (gp_coro_context(coro)->birth_trace[0] | gp_coro_context(coro)->birth_trace[1]) != 0;
}

bool gp_pools_works_for_a_request(void)
{
    prof_coro_t *coro = pool_calls_is_wanted() ? gp_greenlet_spawner() : NULL;
    gp_coro_context_t *context = coro != NULL ? gp_coro_context(coro) : NULL;
    return context != NULL &&
           (atomic_load_explicit(&context->scope, memory_order_relaxed) != NULL ||
            (gp_ledger_edge_load(&context->trace[0]) | gp_ledger_edge_load(&context->trace[1])) != 0);
}

bool gp_pools_is_call(const gp_greenlet_t *running)
{
    return running->coro != NULL && strcmp(gp_py_type_name((gp_py_t *)(uintptr_t)running->object), "PyCapsule") == 0;
}

static void pool_calls_begin(place_t *place, gp_py_t *capsule, const call_t *call)
{
    const gp_greenlet_t record = {.coro = call->coro, .coro_id = call->id, .object = capsule};
    gp_greenlet_enter();
    const gp_greenlet_t pools = gp_greenlet_running(&gp_step_here);
    if (pools.coro != NULL && pools.coro_id != call->coro->parent_id) // the submitter may make the call itself
        gp_profile_detach(pools.coro);
    gp_call_events_enter_call();
    place->is_lent = gp_greenlet_lend(&record, &place->before);
    if (!place->is_lent)
        gp_step_begin(&place->outer, &record, GP_STEP_HAS_NOT_BEGUN);
}

static void pool_calls_end(const place_t *place)
{
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    if (place->is_lent)
        gp_greenlet_give_back(&place->before);
    else
        gp_step_end(&place->outer);
    gp_call_events_leave_call();
    gp_py.error_restore(error[0], error[1], error[2]);
}

// A thread is started within a request: an instant. Returns its id; 0 = it is not recorded.
static uint64_t pool_calls_tell_spawn(const char *thread)
{
    if (!gp_span_may_call(PROF_SPAN_THREAD_SPAWN))
        return 0;
    prof_span_t *span = prof_span_begin(PROF_SPAN_THREAD_SPAWN, thread, NULL);
    uint64_t id = prof_span_id(span);
    prof_span_end(span);
    return id;
}

// The life of a thread of a request, also where the request is over by then. NULL: nothing is known of it any more.
static prof_span_t *pool_calls_begin_main(const call_t *call)
{
    gp_span_parent_t parent;
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.parent_id = call->spawn;
    return call->spawn != 0 && gp_span_past_find(call->spawn, &parent)
               ? prof_span_begin(PROF_SPAN_THREAD_MAIN, call->thread, &options)
               : NULL;
}

// The call that was handed over as `self`, (function, capsule), which is made by calling `function`.
static gp_py_t *pool_calls_make(gp_py_t *self, gp_py_t *function, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *capsule = gp_py.tuple_item(self, 1);
    call_t *call = gp_py.capsule_pointer(capsule, name);
    prof_coro_t *coro = call != NULL && pool_calls_is_wanted() ? call->coro : NULL;
    bool is_carried = coro != NULL && pool_calls_matters(coro);
    const gp_queue_step_t before = gp_queue_calls_enter();
    place_t place;
    prof_span_t *main = NULL;
    if (is_carried) {
        pool_calls_begin(&place, capsule, call);
        main = pool_calls_begin_main(call);
        call->coro = NULL;
    }
    gp_py_t *result = gp_py.call_with(function, args, keywords);
    gp_queue_calls_leave(&before);
    if (is_carried) {
        prof_span_end(main); // takes NULL
        pool_calls_end(&place);
        gp_coro_retire(coro);
    }
    return result;
}

static gp_py_t *pool_calls_on_call(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    return pool_calls_make(self, gp_py.tuple_item(self, 0), args, keywords);
}

static gp_py_method_t handed = {name, NULL, GP_PY_VARARGS | GP_PY_KEYWORDS, NULL};

static void pool_calls_forget(gp_py_t *capsule)
{
    call_t *call = gp_py.capsule_pointer(capsule, name);
    gp_coro_retire(call->coro); // the call was never made
    free(call);
}

static gp_py_t *pool_calls_new_function(gp_py_method_t *definition, gp_py_t *self)
{
    return self != NULL ? gp_py.function_new(definition, self, NULL) : NULL;
}

gp_py_t *gp_pools_hand_over(gp_py_t *function, const gp_handing_t *handing)
{
    handed.function = (void *)(uintptr_t)pool_calls_on_call;
    call_t *call = pool_calls_is_wanted() ? calloc(1, sizeof(*call)) : NULL;
    gp_py_t *capsule = call != NULL ? gp_py.capsule_new(call, name, pool_calls_forget) : NULL;
    gp_py_t *self = capsule != NULL ? gp_py.tuple_pack(2, function, capsule) : NULL,
            *mine = pool_calls_new_function(&handed, self);
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED,
                             .spawner = mine != NULL ? gp_greenlet_spawner() : NULL,
                             .pool = handing->pool,
                             .name = handing->name};
    birth.spawn_site = birth.spawner != NULL ? gp_cpython_spawn_site() : 0;
    birth.entry = birth.spawner != NULL ? gp_pool_entry(handing->work != NULL ? handing->work : function) : 0;
    if (mine != NULL && !handing->is_plain && (call->coro = gp_coro_new(&birth)) != NULL) {
        call->id = call->coro->id;
        prof_coro_ready(call->coro);
        if (handing->is_thread) {
            snprintf(call->thread, sizeof(call->thread), "%s", handing->name != NULL ? handing->name : "thread");
            call->spawn = pool_calls_tell_spawn(call->thread);
        }
    }
    if (call != NULL && capsule == NULL)
        free(call);
    gp_py.drop(self);
    gp_py.drop(capsule);
    if (mine == NULL) {
        gp_py.error_clear();
        gp_py.incref(function);
        return function;
    }
    return mine;
}

// A tuple with the function at `at` handed over; NULL and an error when memory is short.
static gp_py_t *pool_calls_with_handed(gp_py_t *tuple, ptrdiff_t at, uint32_t pool)
{
    enum { ITEMS_MAX = 5 };
    gp_py_t *items[ITEMS_MAX] = {NULL},
            *mine = gp_pools_hand_over(gp_py.tuple_item(tuple, at), &(gp_handing_t){.pool = pool});
    ptrdiff_t count = gp_py.tuple_size(tuple);
    for (ptrdiff_t i = 0; i < count && i < ITEMS_MAX; i++)
        items[i] = i == at ? mine : gp_py.tuple_item(tuple, i);
    gp_py_t *copy = gp_py.tuple_pack(count, items[0], items[1], items[2], items[3], items[4]);
    gp_py.drop(mine);
    return copy;
}

static gp_py_t *pool_calls_call_with_handed(gp_py_t *real, gp_py_t *args, gp_py_t *keywords, ptrdiff_t at,
                                            uint32_t pool)
{
    gp_py_t *copy = pool_calls_with_handed(args, at, pool);
    gp_py_t *result = copy != NULL ? gp_py.call_with(real, copy, keywords) : NULL;
    gp_py.drop(copy);
    return result;
}

static bool pool_calls_is_tuple(gp_py_t *object, ptrdiff_t size)
{
    return gp_py_type(object) == gp_py.tuple_type && gp_py.tuple_size(object) == size;
}

// From 3.14 on there are executors with an interpreter for each worker: the function gets there without ours.
static bool has_interpreters;

static bool pool_calls_may_hand_tasks(void)
{
    return has_interpreters || gp_py.dict_get(gp_py.module_dict(), "concurrent.futures.interpreter") == NULL;
}

// _WorkItem.__init__(item, future, function, args, keywords); from 3.14 on (item, future, (function, args, keywords))
static gp_py_t *pool_calls_on_item(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    ptrdiff_t count = pool_calls_is_wanted() ? gp_py.tuple_size(args) : 0;
    if (count == 5)
        return pool_calls_call_with_handed(real, args, keywords, 2, gp_pool_of_submit());
    if (count > 0 && count != 3) {
        static gp_not_known_t fact;
        gp_not_known_tell(&fact,
                          "pools of threads: not known in this version of Python, their calls belong to no request");
    }
    if (count != 3 || !pool_calls_is_tuple(gp_py.tuple_item(args, 2), 3) || !pool_calls_may_hand_tasks())
        return gp_py.call_with(real, args, keywords);
    gp_py_t *task = pool_calls_with_handed(gp_py.tuple_item(args, 2), 0, gp_pool_of_submit()), *copy = NULL;
    if (task != NULL)
        copy = gp_py.tuple_pack(3, gp_py.tuple_item(args, 0), gp_py.tuple_item(args, 1), task);
    gp_py_t *result = copy != NULL ? gp_py.call_with(real, copy, keywords) : NULL;
    gp_py.drop(copy);
    gp_py.drop(task);
    return result;
}

// WorkerContext.run(context, (function, args, keywords)) of an executor with interpreters: this thread waits in it.
static gp_py_t *pool_calls_on_interpreter(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *task = gp_py.tuple_size(args) == 2 ? gp_py.tuple_item(args, 1) : NULL;
    gp_py_t *mine = task != NULL && pool_calls_is_tuple(task, 3) ? gp_py.tuple_item(task, 0) : NULL;
    if (mine == NULL || gp_py_type(mine) != gp_py.builtin_type || gp_py_definition(mine) != &handed)
        return gp_py.call_with(real, args, keywords);
    gp_py_t *self = gp_py_builtin_self(mine), *copy = NULL, *result = NULL;
    gp_py_t *plain =
        gp_py.tuple_pack(3, gp_py.tuple_item(self, 0), gp_py.tuple_item(task, 1), gp_py.tuple_item(task, 2));
    if (plain != NULL)
        copy = gp_py.tuple_pack(2, gp_py.tuple_item(args, 0), plain);
    if (copy != NULL)
        result = pool_calls_make(self, real, copy, keywords);
    gp_py.drop(copy);
    gp_py.drop(plain);
    return result;
}

// The last argument of a queue's pool_calls_put(), where it is a tuple of four: with its function handed over.
static gp_py_t *pool_calls_put(gp_py_t *real, gp_py_t *args, gp_py_t *keywords, ptrdiff_t at, uint32_t pool)
{
    ptrdiff_t count = gp_py.tuple_size(args);
    gp_py_t *item = count > 0 ? gp_py.tuple_item(args, count - 1) : NULL;
    if (!pool_calls_is_wanted() || item == NULL || !pool_calls_is_tuple(item, 4))
        return gp_py.call_with(real, args, keywords);
    gp_py_t *copied = pool_calls_with_handed(item, at, pool), *copy = NULL, *result = NULL;
    if (copied != NULL)
        copy = count == 1 ? gp_py.tuple_pack(1, copied) : gp_py.tuple_pack(2, gp_py.tuple_item(args, 0), copied);
    if (copy != NULL)
        result = gp_py.call_with(real, copy, keywords);
    gp_py.drop(copy);
    gp_py.drop(copied);
    return result;
}

// eventlet.tpool: queue.put((event, function, args, keywords))
static gp_py_t *pool_calls_on_tpool_put(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "eventlet.tpool");
    gp_py_t *threads = module != NULL ? gp_py.get_attr(module, "_nthreads") : NULL;
    double size = threads != NULL ? gp_py.number(threads) : 0;
    gp_py.error_clear();
    gp_py.drop(threads);
    return pool_calls_put(real, args, keywords, 1, gp_pool_number("eventlet.tpool", size >= 1 ? (uint32_t)size : 0));
}

// gevent: Queue.put(queue, (function, args, keywords, result))
static gp_py_t *pool_calls_on_gevent_put(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    return pool_calls_put(real, args, keywords, 0, gp_pool_number("gevent.threadpool", 0));
}

gp_py_t *gp_pools_token(void)
{
    static call_t none;
    gp_py_t *capsule = gp_py.capsule_new(&none, name, NULL);
    if (capsule == NULL)
        gp_py.error_clear();
    return capsule;
}

bool gp_pools_replace(const char *module_name, const char *holder_name, const char *attribute, gp_py_method_t *mine,
                      bool binds)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), module_name);
    gp_py_t *holder = module != NULL ? gp_py.get_attr(module, holder_name) : NULL;
    gp_py_t *real = holder != NULL && holder != gp_py.none ? gp_py.get_attr(holder, attribute) : NULL;
    bool is_ours = real != NULL && gp_py_type(real) == gp_py.builtin_type && gp_py_definition(real) == mine;
    gp_py_t *function = !is_ours ? pool_calls_new_function(mine, real) : NULL;
    gp_py_t *method = function != NULL && binds ? gp_py.instance_method(function) : NULL,
            *put_there = binds ? method : function;
    bool done = is_ours || (put_there != NULL && gp_py.set_attr(holder, attribute, put_there) == 0);
    if (!done)
        gp_py.error_clear(); // half imported, or another kind of thing
    gp_py.drop(method);
    gp_py.drop(function);
    gp_py.drop(real);
    gp_py.drop(holder);
    return done;
}

static void pool_calls_look(void)
{
    enum { KINDS = GP_PY_VARARGS | GP_PY_KEYWORDS };
    static gp_py_method_t item = {name, NULL, KINDS, NULL}, tpool = {name, NULL, KINDS, NULL},
                          gevent = {name, NULL, KINDS, NULL}, interpreter = {name, NULL, KINDS, NULL};
    static bool has_futures, has_futurist, has_gevent;
    item.function = (void *)(uintptr_t)pool_calls_on_item;
    tpool.function = (void *)(uintptr_t)pool_calls_on_tpool_put;
    gevent.function = (void *)(uintptr_t)pool_calls_on_gevent_put;
    interpreter.function = (void *)(uintptr_t)pool_calls_on_interpreter;
    has_futures = has_futures || gp_pools_replace("concurrent.futures.thread", "_WorkItem", "__init__", &item, true);
    has_interpreters = has_interpreters ||
                       gp_pools_replace("concurrent.futures.interpreter", "WorkerContext", "run", &interpreter, true);
    has_futurist = has_futurist || gp_pools_replace("futurist._utils", "WorkItem", "__init__", &item, true);
    has_gevent = has_gevent || gp_pools_replace("gevent._threading", "Queue", "put", &gevent, true);
    gp_queue_calls_look();
    gp_pools_replace("eventlet.tpool", "_reqq", "put", &tpool,
                     false); // a queue that comes with its first thread, and again after killall()
}

static gp_py_vectorcall_t *real_find;

// importlib's _find_and_load(): a module has been imported.
static gp_py_t *pool_calls_on_find(gp_py_t *function, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    gp_py_t *module = real_find(function, args, count, names);
    if (module != NULL) {
        gp_pools_look();
        gp_call_events_look();
    }
    return module;
}

static void pool_calls_watch_imports(void)
{
    static bool tried;
    gp_py_t *module = tried ? NULL : gp_py.dict_get(gp_py.module_dict(), "_frozen_importlib");
    gp_py_t *function = module != NULL ? gp_py.get_attr(module, "_find_and_load") : NULL;
    tried = tried || module != NULL;
    if (function != NULL)
        real_find = gp_py_replace_vectorcall(function, pool_calls_on_find);
    gp_py.drop(function);
}

void gp_pools_look(void)
{
    gp_py_t *error[3];
    if (!pool_calls_is_wanted())
        return;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    pool_calls_watch_imports();
    pool_calls_look();
    gp_py.error_restore(error[0], error[1], error[2]);
}
