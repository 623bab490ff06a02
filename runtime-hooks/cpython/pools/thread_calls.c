// SPDX-License-Identifier: MIT
#include "pools/thread_calls.h"

#include <string.h>

#include "coro/coro_name.h"
#include "interpreter/frame_walk.h"
#include "pools/pool_calls.h"
#include "pools/pool_names.h"
#include "pools/thread_names.h"

// Is it what a thread of a pool runs, or another one that serves many?
static bool thread_calls_is_worker(gp_py_t *work)
{
    static const char *const files[] = {
        "concurrent/futures/thread.py",
        "concurrent/futures/process.py",
        "multiprocessing/pool.py",
        "multiprocessing/queues.py",
        "logging/handlers.py",
        "futurist/_thread.py",
        "eventlet/tpool.py",
        "anyio/_backends/_asyncio.py",
        "pymongo/periodic_executor.py",
        "grpc/_channel.py",
    };
    bool is_worker = false;
    for (size_t i = 0; work != NULL && i < sizeof(files) / sizeof(files[0]) && !is_worker; i++)
        is_worker = gp_pool_is_of_file(work, files[i]);
    return is_worker;
}

// The function that a Thread object calls: its target, or its own run(). New reference.
static gp_py_t *thread_calls_work_of(gp_py_t *thread)
{
    gp_py_t *target = gp_py.get_attr(thread, "_target");
    if (target != NULL && target != gp_py.none)
        return target;
    gp_py.error_clear();
    gp_py.drop(target);
    gp_py_t *run = gp_py.get_attr(gp_py_type(thread), "run");
    gp_py.error_clear();
    return run;
}

gp_py_t *gp_thread_calls_hand_over(gp_py_t *args)
{
    enum { ITEMS_MAX = 3 };
    ptrdiff_t count = gp_py.tuple_size(args);
    gp_py_t *first = count > 0 && count <= ITEMS_MAX ? gp_py.tuple_item(args, 0) : NULL;
    if (!__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) || first == NULL || !gp_cpython_is_main() ||
        gp_py_type(first) != gp_py.bound_type || !gp_pool_is_method(first, "._bootstrap"))
        return NULL;
    char name[GP_CORO_NAME_SIZE] = "";
    gp_py_t *thread = gp_py_bound_self(first), *work = thread_calls_work_of(thread);
    bool is_named = gp_thread_names_read(thread, name);
    const gp_handing_t handing = {.work = work,
                                  .name = is_named ? name : NULL,
                                  .is_thread = true,
                                  .is_plain = !gp_pools_works_for_a_request() || thread_calls_is_worker(work)};
    gp_py_t *mine = gp_pools_hand_over(first, &handing);
    gp_py.drop(work);
    gp_py_t *items[ITEMS_MAX] = {mine};
    for (ptrdiff_t i = 1; i < count; i++)
        items[i] = gp_py.tuple_item(args, i);
    gp_py_t *copy = mine != first ? gp_py.tuple_pack(count, items[0], items[1], items[2]) : NULL;
    gp_py.error_clear();
    gp_py.drop(mine);
    return copy;
}
