// SPDX-License-Identifier: MIT
#include "pools/queue_calls.h"

#include <string.h>

#include "collect/pools.h"
#include "coro/coro_name.h"
#include "coro/registry.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/frame_walk.h"
#include "interpreter/spawn_site.h"
#include "pools/pool_calls.h"
#include "pools/pool_names.h"
#include "signal/ledger_edges.h"

enum {
    KINDS = GP_PY_VARARGS | GP_PY_KEYWORDS,
    PUT_FLAGS = GP_PY_FASTCALL | GP_PY_KEYWORDS,
    GET_FLAGS = 0x200 | GP_PY_FASTCALL | GP_PY_KEYWORDS, // METH_METHOD
    TASK_ITEMS = 5,    // of a task of ThreadPool: (job, number, function, arguments, keywords)
    TASK_FUNCTION = 2, // which is mapstar() or the like where that is several calls
    POOL_WORKERS = 3,  // argument of Pool._handle_tasks(): a list
};

typedef struct item {
    const gp_py_t *queue, *object;
    prof_coro_t *coro; // NULL = none, or it was taken
    uint64_t id;
} item_t;

static const char pool_file[] = "multiprocessing/pool.py";
static item_t items[GP_QUEUE_ITEMS]; // from `oldest` on, in the order in which they were put
static uint32_t oldest, newest;      // count from 0 on; the place is modulo GP_QUEUE_ITEMS
static __thread gp_queue_step_t here;
static gp_py_t *token; // what a thread that works on an item is shown to run

// --- items

// In a child process the records may be others' by now.
static bool queue_calls_is_there(const item_t *item)
{
    return item->coro != NULL && gp_ledger_edge_load(&item->coro->id) == item->id;
}

static void queue_calls_drop(const item_t *item)
{
    if (queue_calls_is_there(item))
        gp_coro_retire(item->coro);
}

static void queue_calls_forget_oldest(void)
{
    item_t *item = &items[oldest++ % GP_QUEUE_ITEMS];
    queue_calls_drop(item);
    item->coro = NULL;
}

// Take the first item with this object off the list. Returns false: no work is in it.
static bool queue_calls_find(const gp_py_t *queue, const gp_py_t *object, item_t *found)
{
    for (; oldest != newest && items[oldest % GP_QUEUE_ITEMS].coro == NULL; oldest++)
        continue;
    for (uint32_t i = oldest; i != newest; i++) {
        item_t *item = &items[i % GP_QUEUE_ITEMS];
        if (item->coro == NULL || item->queue != queue || item->object != object)
            continue;
        *found = *item;
        item->coro = NULL;
        return true;
    }
    return false;
}

// The function that an item is about.
static gp_py_t *queue_calls_work_of(gp_py_t *object)
{
    gp_py_t *work = object;
    bool is_tuple = gp_py_type(object) == gp_py.tuple_type;
    for (ptrdiff_t i = 0; is_tuple && i < gp_py.tuple_size(object) && i < TASK_ITEMS; i++)
        if (gp_pool_code(work = gp_py.tuple_item(object, i)) != NULL)
            break;
    if (!is_tuple || gp_py.tuple_size(object) != TASK_ITEMS || !gp_pool_is_of_file(work, pool_file))
        return work;
    gp_py_t *inner = gp_py.tuple_item(object, TASK_FUNCTION + 1); // ((function, arguments),)
    for (int i = 0; i < 2 && gp_py_type(inner) == gp_py.tuple_type && gp_py.tuple_size(inner) > 0; i++)
        inner = gp_py.tuple_item(inner, 0);
    return gp_pool_code(inner) != NULL ? inner : work;
}

// An item that a pool with calls of its own hands over, or the end of a worker.
static bool queue_calls_is_other(const gp_py_t *object)
{
    const char *type = object != gp_py.none ? gp_py_type_name((gp_py_t *)(uintptr_t)object) : "_WorkItem";
    return strcmp(type, "_WorkItem") == 0 || strcmp(type, "WorkItem") == 0;
}

static uint32_t queue_calls_pool_here(void)
{
    gp_py_t *workers = gp_pool_argument_of("Pool._handle_tasks", pool_file, POOL_WORKERS);
    ptrdiff_t size = workers != NULL ? gp_py.list_size(workers) : 0;
    gp_py.error_clear();
    return size > 0 ? gp_pool_number("ThreadPool", (uint32_t)size) : 0;
}

static void queue_calls_put(const gp_py_t *queue, gp_py_t *object)
{
    if (!gp_cpython_is_main() || queue_calls_is_other(object) || gp_greenlet_current() != NULL)
        return;
    uint32_t pool = queue_calls_pool_here();
    if (pool == 0 && !gp_pools_works_for_a_request())
        return;
    gp_py_t *work = queue_calls_work_of(object);
    prof_coro_t *spawner = gp_greenlet_spawner();
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED, .spawner = spawner, .pool = pool};
    birth.parent_id = here.coro != NULL && here.coro == spawner ? spawner->parent_id : 0; // the one that waits for it
    birth.entry = gp_pool_entry(work);
    birth.name = birth.entry != 0 ? gp_pool_function_name(work) : "item of a queue";
    birth.spawn_site = gp_cpython_spawn_site();
    prof_coro_t *coro = gp_coro_new(&birth);
    if (coro == NULL)
        return;
    if (newest - oldest == GP_QUEUE_ITEMS)
        queue_calls_forget_oldest();
    items[newest++ % GP_QUEUE_ITEMS] = (item_t){queue, object, coro, coro->id};
    prof_coro_ready(coro);
}

// --- the thread that works on them

static void queue_calls_end(void)
{
    prof_coro_t *coro = here.coro;
    gp_py_t *error[3];
    if (coro == NULL || gp_step_here.coro != coro)
        return; // a call within it has got something
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    here.coro = NULL;
    gp_step_end(&here.outer);
    gp_coro_retire(coro);
    gp_py.error_restore(error[0], error[1], error[2]);
}

static bool queue_calls_is_same_request(const prof_coro_t *a, const prof_coro_t *b)
{
    for (int i = 0; i < 2; i++)
        if (gp_ledger_edge_load(&gp_coro_context(a)->trace[i]) != gp_ledger_edge_load(&gp_coro_context(b)->trace[i]))
            return false;
    return true;
}

// May the calling thread work as another coroutine? A green thread and a task may not; nor may a thread that works for
// a request by itself: nothing would say when it goes on. A call does so at its end, at the latest.
static bool queue_calls_may_begin(const item_t *item)
{
    const gp_greenlet_t running = gp_greenlet_running(&gp_step_here);
    if (gp_greenlet_current() != NULL || here.coro != NULL)
        return false;
    if (running.coro == NULL)
        return !gp_pools_works_for_a_request();
    return gp_pools_is_call(&running) && !queue_calls_is_same_request(running.coro, item->coro);
}

static void queue_calls_got(const gp_py_t *queue, const gp_py_t *object)
{
    item_t item;
    if (!gp_cpython_is_main() || oldest == newest || !queue_calls_find(queue, object, &item))
        return;
    if (token == NULL)
        token = gp_pools_token();
    if (here.coro != NULL && gp_step_here.coro == NULL)
        here.coro = NULL; // that was in the parent process
    if (token == NULL || !queue_calls_is_there(&item) || !queue_calls_may_begin(&item)) {
        queue_calls_drop(&item);
        return;
    }
    const gp_greenlet_t record = {.coro = item.coro, .coro_id = item.id, .object = token};
    uintptr_t base = gp_step_here.base;
    gp_greenlet_enter();
    gp_step_begin(&here.outer, &record, GP_STEP_HAS_NOT_BEGUN);
    gp_step_rebase(base); // its frames are those that this returns to
    here.coro = item.coro;
}

gp_queue_step_t gp_queue_calls_enter(void)
{
    gp_queue_step_t before = here;
    here.coro = NULL;
    return before;
}

void gp_queue_calls_leave(const gp_queue_step_t *before)
{
    queue_calls_end();
    here = *before;
}

// --- queue.Queue and its kinds: Python's

// Queue._put(queue, item)
static gp_py_t *queue_calls_on_put(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_py.tuple_size(args) == 2)
        queue_calls_put(gp_py.tuple_item(args, 0), gp_py.tuple_item(args, 1));
    return gp_py.call_with(real, args, keywords);
}

// Queue._get(queue)
static gp_py_t *queue_calls_on_get(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    if (here.coro != NULL) // a get() of another kind than queue.py's
        queue_calls_end();
    gp_py_t *object = gp_py.call_with(real, args, keywords);
    if (object != NULL && gp_py.tuple_size(args) == 1)
        queue_calls_got(gp_py.tuple_item(args, 0), object);
    return object;
}

// Queue._qsize(queue), by get() before it waits
static gp_py_t *queue_calls_on_size(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    if (here.coro != NULL && gp_pool_argument_of(".get", "queue.py", 0) != NULL)
        queue_calls_end();
    return gp_py.call_with(real, args, keywords);
}

// --- queue.SimpleQueue: C's

typedef gp_py_t *simple_put_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names);
typedef gp_py_t *simple_get_t(gp_py_t *self, gp_py_t *type, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names);

static simple_put_t *real_put;
static simple_get_t *real_get, *real_get_nowait;

static gp_py_t *queue_calls_on_simple_put(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && count > 0)
        queue_calls_put(self, args[0]);
    return real_put(self, args, count, names);
}

static gp_py_t *queue_calls_simple_get(simple_get_t *real, gp_py_t *self, gp_py_t *type, gp_py_t *const *args,
                                       ptrdiff_t count, gp_py_t *names)
{
    if (here.coro != NULL)
        queue_calls_end();
    gp_py_t *object = real(self, type, args, count, names);
    if (object != NULL)
        queue_calls_got(self, object);
    return object;
}

static gp_py_t *queue_calls_on_simple_get(gp_py_t *self, gp_py_t *type, gp_py_t *const *args, ptrdiff_t count,
                                          gp_py_t *names)
{
    return queue_calls_simple_get(real_get, self, type, args, count, names);
}

static gp_py_t *queue_calls_on_get_nowait(gp_py_t *self, gp_py_t *type, gp_py_t *const *args, ptrdiff_t count,
                                          gp_py_t *names)
{
    return queue_calls_simple_get(real_get_nowait, self, type, args, count, names);
}

static void queue_calls_look_at_simple(void)
{
    static const char module[] = "_queue", type[] = "SimpleQueue";
    if (real_put != NULL || gp_py.dict_get(gp_py.module_dict(), module) == NULL)
        return;
    void *put = gp_py_replace_method(gp_py_method_in(module, type, "put"), PUT_FLAGS,
                                     (void *)(uintptr_t)queue_calls_on_simple_put);
    real_put = (simple_put_t *)(uintptr_t)put;
    if (real_put == NULL)
        return;
    real_get = (simple_get_t *)(uintptr_t)gp_py_replace_method(gp_py_method_in(module, type, "get"), GET_FLAGS,
                                                               (void *)(uintptr_t)queue_calls_on_simple_get);
    real_get_nowait = (simple_get_t *)(uintptr_t)gp_py_replace_method(
        gp_py_method_in(module, type, "get_nowait"), GET_FLAGS, (void *)(uintptr_t)queue_calls_on_get_nowait);
}

void gp_queue_calls_look(void)
{
    static const char *const types[] = {"Queue", "LifoQueue", "PriorityQueue"};
    static gp_py_method_t put = {"greenprof", NULL, KINDS, NULL}, get = {"greenprof", NULL, KINDS, NULL},
                          size = {"greenprof", NULL, KINDS, NULL};
    static bool is_done;
    put.function = (void *)(uintptr_t)queue_calls_on_put;
    get.function = (void *)(uintptr_t)queue_calls_on_get;
    size.function = (void *)(uintptr_t)queue_calls_on_size;
    queue_calls_look_at_simple();
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !is_done; i++)
        if (!gp_pools_replace("queue", types[i], "_put", &put, true) ||
            !gp_pools_replace("queue", types[i], "_get", &get, true) ||
            !gp_pools_replace("queue", types[i], "_qsize", &size, true))
            return;
    is_done = true;
}
