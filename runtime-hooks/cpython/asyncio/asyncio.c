// SPDX-License-Identifier: MIT
#include "asyncio/asyncio.h"

#include <string.h>

#include "asyncio/asyncio_probe.h"
#include "asyncio/python_tasks.h"
#include "coro/registry.h"
#include "coro/switch.h"
#include "coro/threads.h"
#include "greenlet/greenlet_map.h"
#include "greenlet/greenlet_run.h"
#include "greenlet/loop_look.h"
#include "greenlet/walk_parked.h"
#include "interpreter/frame_walk.h"
#include "interpreter/spawn_site.h"
#include "interpreter/task_step.h"
#include "not_known.h"

enum { ARGUMENTS_OFFSET_BIT = 63 }; // PY_VECTORCALL_ARGUMENTS_OFFSET

typedef int init_t(gp_py_t *task, gp_py_t *args, gp_py_t *keywords);
typedef void dealloc_t(gp_py_t *task);
typedef gp_py_t *call_t(gp_py_t *callable, gp_py_t *args, gp_py_t *keywords);
typedef gp_py_t *method_t(gp_py_t *self, gp_py_t *argument);

static gp_asyncio_steps_t steps; // step_type NULL = asyncio is not hooked
static init_t *real_init;
static dealloc_t *real_dealloc;
static call_t *real_step;
static method_t *real_wakeup, *real_set_name, *get_name, *get_coro, *is_done;
static gp_py_vectorcall_t *real_call_soon;
static gp_py_t *qualname, *is_true, *task_type;

static bool asyncio_is_sampling(void)
{
    return __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED);
}

// "Task-1", as asyncio calls those that have no name; "None" where there is a task factory, before 3.14.
static bool asyncio_is_made_up(const char *name)
{
    if (strcmp(name, "None") == 0)
        return true;
    size_t digits = strncmp(name, "Task-", 5) == 0 ? strspn(name + 5, "0123456789") : 0;
    return digits > 0 && name[5 + digits] == '\0';
}

// The name given by the program (a new reference, or NULL), else the coroutine function's. Returns a text object, NULL
// = neither.
static gp_py_t *asyncio_better_name(gp_py_t *name, gp_py_t *coroutine)
{
    const char *text = name != NULL ? gp_py.utf8(name, NULL) : NULL;
    if (text != NULL && text[0] != '\0' && !asyncio_is_made_up(text))
        return name;
    gp_py_t *function = coroutine != NULL ? gp_py.get_attr_of(coroutine, qualname) : NULL;
    if (function != NULL && gp_py.utf8(function, NULL) != NULL) {
        gp_py.drop(name);
        return function;
    }
    gp_py.drop(function);
    gp_py.error_clear();
    return name;
}

// A method's answer, of a task in C or in Python. New reference; NULL = it has none.
static gp_py_t *asyncio_ask(gp_py_t *task, method_t *method, const char *name)
{
    if (gp_py.is_subtype(gp_py_type(task), task_type))
        return method(task, NULL);
    gp_py_t *result = gp_py.call_method(task, name, NULL);
    if (result == NULL)
        gp_py.error_clear();
    return result;
}

static gp_py_t *asyncio_coroutine_of(gp_py_t *task)
{
    return asyncio_ask(task, get_coro, "get_coro");
}

static gp_py_t *asyncio_name_of(gp_py_t *task)
{
    gp_py_t *coroutine = asyncio_coroutine_of(task), *name = asyncio_ask(task, get_name, "get_name");
    if (name != NULL && !gp_py.is_subtype(gp_py_type(name), gp_py.text_type)) { // what is no task says anything
        gp_py.drop(name);
        name = NULL;
    }
    name = asyncio_better_name(name, coroutine);
    gp_py.drop(coroutine);
    return name;
}

// coroutine: which the task keeps, or is about to.
static void asyncio_add_as(gp_py_t *task, prof_coro_t *spawner, gp_py_t *coroutine, gp_py_t *name)
{
    gp_coro_birth_t birth = {
        .kind = GP_CORO_ANNOUNCED,
        .spawner = spawner,
        .spawn_site = spawner != NULL ? gp_cpython_spawn_site() : 0,
        .object = coroutine != NULL ? (uintptr_t)coroutine | GP_CPYTHON_IS_TASK : 0,
        .name = name != NULL ? gp_py.utf8(name, NULL) : NULL,
    };
    prof_coro_t *coro = gp_coro_new(&birth);
    gp_coro_retire(gp_greenlet_take(task));
    if (coro != NULL)
        gp_greenlet_put(&(gp_greenlet_t){task, coro, coro->id, task});
}

static void asyncio_add(gp_py_t *task, prof_coro_t *spawner)
{
    gp_py_t *name = asyncio_name_of(task), *coroutine = asyncio_coroutine_of(task);
    asyncio_add_as(task, spawner, coroutine, name);
    gp_py.drop(name);
    gp_py.drop(coroutine);
}

void gp_asyncio_forget(const void *task)
{
    prof_coro_t *coro = gp_greenlet_take(task);
    if (coro != NULL)
        gp_coro_retire(coro);
}

static void asyncio_mark_ready(gp_py_t *task)
{
    const gp_greenlet_t *found = gp_greenlet_find(task);
    if (found == NULL)
        return;
    prof_coro_ready(found->coro);
    if (gp_step_here.task == NULL) // the loop does, for what it has found
        gp_ledger_edge_ready_by_look(found->coro);
}

static void asyncio_begin_with(gp_task_step_t *outer, gp_py_t *task, gp_py_t *coroutine)
{
    const gp_greenlet_t *found = gp_greenlet_find(task);
    gp_greenlet_t record = found != NULL ? *found : (gp_greenlet_t){.object = task};
    gp_step_begin(outer, &record, (uintptr_t)coroutine);
}

void gp_asyncio_named(gp_py_t *task)
{
    const gp_greenlet_t *found = gp_cpython_is_main() ? gp_greenlet_find(task) : NULL;
    gp_py_t *name = found != NULL ? asyncio_name_of(task) : NULL;
    if (name != NULL)
        prof_coro_name(found->coro, gp_py.utf8(name, NULL));
    gp_py.drop(name);
}

static bool asyncio_has_not_begun(gp_py_t *coroutine)
{
    const gp_cpython_runtime_t *runtime = &gp_cpython_runtime;
    if (coroutine == NULL || (uintptr_t)gp_py_type(coroutine) != runtime->generator_types[0])
        return false;
    const signed char *frame = (signed char *)coroutine + runtime->generator_frame;
    return frame[GP_CPYTHON_GENERATOR_STATE] == runtime->layout->generator_created;
}

void gp_asyncio_begin(gp_task_step_t *outer, gp_py_t *task)
{
    if (gp_greenlet_find(task) == NULL)
        asyncio_add(task, NULL); // older than the hook
    gp_py_t *coroutine = asyncio_is_sampling() ? asyncio_coroutine_of(task) : NULL;
    if (!gp_py.is_subtype(gp_py_type(task), task_type) && asyncio_has_not_begun(coroutine))
        gp_asyncio_named(task); // it may have got its name since it was made
    asyncio_begin_with(outer, task, coroutine);
    gp_py.drop(coroutine);
}

// A task in Python asks for its next step itself where it awaits nothing.
static void asyncio_look_at_waiter(gp_py_t *task)
{
    gp_py_t *waiter = asyncio_is_sampling() && !gp_py.is_subtype(gp_py_type(task), task_type)
                          ? gp_py.get_attr(task, "_fut_waiter")
                          : gp_py.true_object;
    if (waiter == NULL)
        gp_py.error_clear();
    else if (waiter == gp_py.none)
        asyncio_mark_ready(task);
    if (waiter != gp_py.true_object)
        gp_py.drop(waiter);
}

void gp_asyncio_end(const gp_task_step_t *outer, gp_py_t *task)
{
    gp_step_end(outer);
    gp_py_t *done = asyncio_ask(task, is_done, "done");
    if (done == is_true) // waits for nothing any more, however long its object is kept
        gp_asyncio_forget(task);
    else
        asyncio_look_at_waiter(task);
    gp_py.drop(done);
}

static void asyncio_end_with(gp_py_t *result, const gp_task_step_t *outer, gp_py_t *task)
{
    gp_py_t *error[3];
    if (result != NULL) {
        gp_asyncio_end(outer, task);
        return;
    }
    gp_py.error_fetch(&error[0], &error[1], &error[2]); // SystemExit and the like go through the loop
    gp_asyncio_end(outer, task);
    gp_py.error_restore(error[0], error[1], error[2]);
}

bool gp_asyncio_is_left(void)
{
    return atomic_load_explicit(&gp_language_is_left, memory_order_relaxed) || !gp_cpython_is_main();
}

static gp_py_t *asyncio_task_of_step(gp_py_t *step)
{
    return *(gp_py_t **)(void *)((char *)step + GP_ASYNCIO_STEP_TASK);
}

static gp_py_t *asyncio_on_step(gp_py_t *step, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *task = asyncio_task_of_step(step);
    gp_task_step_t outer;
    if (task == NULL || gp_asyncio_is_left())
        return real_step(step, args, keywords);
    gp_asyncio_begin(&outer, task);
    gp_py_t *result = real_step(step, args, keywords);
    asyncio_end_with(result, &outer, task);
    return result;
}

static gp_py_t *asyncio_on_wakeup(gp_py_t *task, gp_py_t *future)
{
    gp_task_step_t outer;
    if (gp_asyncio_is_left())
        return real_wakeup(task, future);
    gp_asyncio_begin(&outer, task);
    gp_py_t *result = real_wakeup(task, future);
    asyncio_end_with(result, &outer, task);
    return result;
}

// The task that a callback makes a step of, NULL = something else.
static gp_py_t *asyncio_task_of_callback(gp_py_t *callback)
{
    if (gp_py_type(callback) == steps.step_type)
        return asyncio_task_of_step(callback);
    if (gp_py_type(callback) == steps.builtin_type && gp_py_definition(callback) == steps.wakeup)
        return *(gp_py_t **)(void *)((char *)callback + GP_PY_BUILTIN_SELF);
    if (gp_py_type(callback) != gp_py.bound_type)
        return NULL;
    gp_py_t *self = gp_py_bound_self(callback); // a task in Python has two methods for the loop alone
    return gp_py.is_subtype(gp_py_type(self), task_type) ? NULL : self;
}

static gp_py_t *asyncio_on_call_soon(gp_py_t *function, gp_py_t *const *args, size_t count, gp_py_t *names)
{
    gp_py_t *result = real_call_soon(function, args, count, names);
    if (result == NULL || !asyncio_is_sampling() || (count & ~((size_t)1 << ARGUMENTS_OFFSET_BIT)) < 2)
        return result;
    gp_py_t *task = asyncio_task_of_callback(args[1]); // behind the loop
    if (task != NULL)
        asyncio_mark_ready(task);
    return result;
}

// Calls of call_soon() by C code, which the steps of C tasks are, go by this slot of the function; the function is
// otherwise left as it is.
static void asyncio_look_for_loop(void)
{
    static bool looked;
    gp_py_t *module = looked ? NULL : gp_py.dict_get(gp_py.module_dict(), "asyncio.base_events");
    gp_py_t *type = module != NULL ? gp_py.get_attr(module, "BaseEventLoop") : NULL;
    gp_py_t *function = type != NULL ? gp_py.get_attr(type, "call_soon") : NULL;
    if (function == NULL) {
        gp_py.error_clear(); // half imported: the next task will look again
        gp_py.drop(type);
        return;
    }
    looked = true;
    gp_loop_look_hook();
    real_call_soon = gp_py_replace_vectorcall(function, asyncio_on_call_soon);
    gp_py.drop(function);
    gp_py.drop(type);
}

// A task that begins at once (eager_start, 3.12 on) makes its first step while it is made.
static int asyncio_init_eagerly(gp_py_t *task, gp_py_t *args, gp_py_t *keywords)
{
    gp_task_step_t outer;
    gp_py_t *coroutine = gp_py.tuple_size(args) > 0 ? gp_py.tuple_item(args, 0) : gp_py.dict_get(keywords, "coro");
    gp_py_t *name = gp_py.dict_get(keywords, "name");
    if (name != NULL && gp_py.is_subtype(gp_py_type(name), gp_py.text_type))
        gp_py.incref(name);
    else
        name = NULL;
    name = asyncio_better_name(name, coroutine);
    asyncio_add_as(task, gp_greenlet_spawner(), coroutine, name);
    gp_py.drop(name);
    asyncio_begin_with(&outer, task, coroutine);
    int error = real_init(task, args, keywords);
    asyncio_end_with(error == 0 ? task : NULL, &outer, task);
    if (error != 0)
        gp_asyncio_forget(task);
    return error;
}

bool gp_asyncio_add(gp_py_t *task)
{
    if (gp_greenlet_find(task) != NULL) // a task that has begun while it was made is registered twice
        return false;
    asyncio_look_for_loop();
    asyncio_add(task, gp_greenlet_spawner());
    asyncio_mark_ready(task);
    return true;
}

static int asyncio_on_init(gp_py_t *task, gp_py_t *args, gp_py_t *keywords)
{
    if (gp_asyncio_is_left())
        return real_init(task, args, keywords);
    asyncio_look_for_loop();
    if (keywords != NULL && gp_py.dict_get(keywords, "eager_start") == is_true)
        return asyncio_init_eagerly(task, args, keywords);
    int error = real_init(task, args, keywords);
    if (error != 0)
        return error;
    asyncio_add(task, gp_greenlet_spawner());
    asyncio_mark_ready(task); // its first step has been asked for
    return 0;
}

static void asyncio_on_dealloc(gp_py_t *task)
{
    gp_asyncio_forget(task);
    real_dealloc(task);
}

static gp_py_t *asyncio_on_set_name(gp_py_t *task, gp_py_t *value)
{
    gp_py_t *result = real_set_name(task, value);
    if (result != NULL)
        gp_asyncio_named(task);
    return result;
}

void gp_asyncio_enter(void)
{
    const gp_task_step_t *step = &gp_step_here;
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    gp_thread_t *thread = step->coro != NULL && asyncio_is_sampling() ? gp_thread_attach() : NULL;
    if (thread != NULL && (thread->epoch != atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed) ||
                           step->coro != atomic_load_explicit(&thread->current, memory_order_relaxed)))
        gp_switch_to(step->coro, step->coro_id, &park);
}

// Types that were derived before have a copy of tp_init, and __init__ is a copy of it, too.
static void asyncio_replace_init(gp_py_t *type)
{
    void **slot = gp_py_slot(type, GP_PY_TYPE_INIT);
    if (*slot != (void *)(uintptr_t)real_init)
        return;
    *slot = (void *)(uintptr_t)asyncio_on_init;
    gp_py_t *derived = gp_py.call_method(type, "__subclasses__", NULL);
    for (ptrdiff_t i = 0; derived != NULL && i < gp_py.list_size(derived); i++)
        asyncio_replace_init(gp_py.list_item(derived, i));
    if (derived == NULL)
        gp_py.error_clear();
    gp_py.drop(derived);
}

static void asyncio_replace_wrapped_init(gp_py_t *type)
{
    gp_py_t *wrapper = gp_py.get_attr(type, "__init__");
    void **wrapped = wrapper != NULL ? gp_py_slot(wrapper, GP_PY_WRAPPER_WRAPPED) : NULL;
    if (wrapped != NULL && *wrapped == (void *)(uintptr_t)real_init)
        *wrapped = (void *)(uintptr_t)asyncio_on_init;
    gp_py.drop(wrapper);
}

static gp_py_method_t *asyncio_find_method(gp_py_t *type, const char *name, int flags)
{
    gp_py_method_t *method = gp_py_type_method(type, name);
    return method != NULL && method->flags == flags ? method : NULL;
}

static void *asyncio_replace(void *function, void *mine)
{
    void **at = function, *before = *at;
    *at = mine;
    return before;
}

static void asyncio_hook(gp_py_t *module, gp_py_t *type)
{
    gp_py_method_t *name = asyncio_find_method(type, "get_name", GP_PY_NOARGS),
                   *coro = asyncio_find_method(type, "get_coro", GP_PY_NOARGS);
    gp_py_method_t *done = asyncio_find_method(type, "done", GP_PY_NOARGS),
                   *set_name = asyncio_find_method(type, "set_name", GP_PY_O);
    qualname = gp_py.text("__qualname__");
    is_true = gp_py.true_object;
    task_type = type;
    if (name != NULL && coro != NULL && done != NULL && set_name != NULL && qualname != NULL &&
        gp_asyncio_probe(module, &steps)) {
        get_name = (method_t *)(uintptr_t)name->function;
        get_coro = (method_t *)(uintptr_t)coro->function;
        is_done = (method_t *)(uintptr_t)done->function;
        real_init = (init_t *)(uintptr_t)*gp_py_slot(type, GP_PY_TYPE_INIT);
        real_dealloc = (dealloc_t *)(uintptr_t)asyncio_replace(gp_py_slot(type, GP_PY_TYPE_DEALLOC),
                                                               (void *)(uintptr_t)asyncio_on_dealloc);
        real_step = (call_t *)(uintptr_t)asyncio_replace(gp_py_slot(steps.step_type, GP_PY_TYPE_CALL),
                                                         (void *)(uintptr_t)asyncio_on_step);
        real_wakeup =
            (method_t *)(uintptr_t)asyncio_replace(&steps.wakeup->function, (void *)(uintptr_t)asyncio_on_wakeup);
        real_set_name =
            (method_t *)(uintptr_t)asyncio_replace(&set_name->function, (void *)(uintptr_t)asyncio_on_set_name);
        asyncio_replace_init(type);
        asyncio_replace_wrapped_init(type);
        gp_python_tasks_hook(module);
    } else {
        static gp_not_known_t fact;
        gp_not_known_tell(&fact, "asyncio: not known in this version of Python, tasks are not told apart");
    }
}

void gp_asyncio_hook(gp_py_t *module)
{
    gp_py_t *error[3];
    static bool tried;
    if (tried || !gp_cpython_is_main())
        return;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    gp_py_t *type = gp_py.get_attr(module, "Task"); // NULL = it is being made
    tried = type != NULL;
    if (type != NULL)
        asyncio_hook(module, type);
    gp_py.drop(type);
    gp_py.error_restore(error[0], error[1], error[2]);
}

void gp_asyncio_look(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_asyncio");
    if (module != NULL)
        gp_asyncio_hook(module);
}
