// SPDX-License-Identifier: MIT
#include "pools/thread_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "coro/coro_name.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/api.h"
#include "interpreter/inittab.h"
#include "interpreter/task_step.h"
#include "pools/pool_calls.h"
#include "pools/thread_calls.h"

enum { KINDS = GP_PY_VARARGS | GP_PY_KEYWORDS, ACTIVE_MAX = 1 << 16, WAITING_MAX = 256 };

typedef gp_py_t *call_t(gp_py_t *self, gp_py_t *args, gp_py_t *keywords); // without keywords, the last is not looked at

static call_t *real_start, *real_joinable; // _thread's, the second from 3.13 on

static const char *const threading = "threading";

// Threads that the core has not met yet. Written under the interpreter lock, once each; read by any thread.
static struct waiting {
    _Atomic pid_t tid; // 0 = free
    char name[GP_CORO_NAME_SIZE];
} waiting[WAITING_MAX];

bool gp_thread_names_waiting(pid_t tid, char name[GP_CORO_NAME_SIZE])
{
    for (size_t i = 0; i < WAITING_MAX; i++)
        // Acquire: partner of the release in thread_names_let_wait().
        if (atomic_load_explicit(&waiting[i].tid, memory_order_acquire) == tid) {
            memcpy(name, waiting[i].name, GP_CORO_NAME_SIZE);
            return true;
        }
    return false;
}

static void thread_names_let_wait(pid_t tid, const char *name)
{
    size_t i = 0;
    while (i < WAITING_MAX && atomic_load_explicit(&waiting[i].tid, memory_order_relaxed) != 0)
        if (atomic_load_explicit(&waiting[i++].tid, memory_order_relaxed) == tid)
            return;
    if (i == WAITING_MAX)
        return;
    memcpy(waiting[i].name, name, GP_CORO_NAME_SIZE);
    // Release: partner of the acquire in gp_thread_names_waiting().
    atomic_store_explicit(&waiting[i].tid, tid, memory_order_release);
}

static pid_t thread_names_tid_of(gp_py_t *object)
{
    gp_py_t *number = gp_py.get_attr(object, "_native_id");
    pid_t tid = number != NULL && number != gp_py.none ? (pid_t)gp_py.number(number) : 0;
    gp_py.error_clear();
    gp_py.drop(number);
    return tid;
}

// The thread of a Thread object; NULL: it has not begun, or is not known here.
static gp_thread_t *thread_names_thread_of(gp_py_t *object)
{
    pid_t tid = thread_names_tid_of(object);
    gp_thread_t *thread = tid > 0 ? atomic_load_explicit(&gp_thread_list, memory_order_acquire) : NULL;
    while (thread != NULL && (atomic_load_explicit(&thread->tid, memory_order_relaxed) != tid ||
                              atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE))
        thread = thread->next;
    return thread;
}

bool gp_thread_names_read(gp_py_t *object, char name[GP_CORO_NAME_SIZE])
{
    gp_py_t *text = gp_py.get_attr(object, "_name");
    const char *utf8 = text != NULL && gp_py_type(text) == gp_py.text_type ? gp_py.utf8(text, NULL) : NULL;
    bool is_good = utf8 != NULL && utf8[0] != '\0' && strncmp(utf8, "Dummy-", 6) != 0;
    if (is_good) {
        strncpy(name, utf8, GP_CORO_NAME_SIZE - 1);
        name[GP_CORO_NAME_SIZE - 1] = '\0';
    }
    gp_py.error_clear();
    gp_py.drop(text);
    return is_good;
}

static void thread_names_give(gp_thread_t *thread, const char *name)
{
    gp_lock(&gp_registry_lock);
    gp_coro_name_set(thread->root, name);
    gp_unlock(&gp_registry_lock);
}

// Does a green thread run? The thread below it has another name.
static bool thread_names_is_green(void)
{
    const gp_greenlet_t running = gp_greenlet_running(&gp_step_here);
    return running.coro != NULL && !gp_pools_is_call(&running);
}

// Thread._set_native_id(thread), by the new thread
static gp_py_t *thread_names_on_native_id(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *result = gp_py.call_with(real, args, keywords);
    if (result == NULL || gp_py.tuple_size(args) != 1 || thread_names_is_green())
        return result;
    gp_py_t *object = gp_py.tuple_item(args, 0);
    gp_thread_t *thread = thread_names_thread_of(object);
    char name[GP_CORO_NAME_SIZE];
    if (thread != NULL && thread == gp_thread_self && gp_thread_names_read(object, name))
        thread_names_give(thread, name);
    return result;
}

// Thread.name = ..., by any thread
static gp_py_t *thread_names_on_name(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    char before[GP_CORO_NAME_SIZE] = "", now[GP_CORO_NAME_SIZE], given[GP_CORO_NAME_SIZE] = "";
    gp_py_t *object = gp_py.tuple_size(args) == 2 ? gp_py.tuple_item(args, 0) : NULL;
    gp_thread_t *thread = object != NULL ? thread_names_thread_of(object) : NULL;
    bool was_good = thread != NULL && gp_thread_names_read(object, before);
    gp_py_t *result = gp_py.call_with(real, args, keywords);
    if (result == NULL || !was_good || !gp_thread_names_read(object, now))
        return result;
    gp_coro_name_get(thread->root, given);
    if (strcmp(given, before) == 0 || (given[0] == '\0' && strcmp(before, "MainThread") == 0))
        thread_names_give(thread, now);
    return result;
}

static void thread_names_replace_setter(gp_py_method_t *mine)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), threading);
    gp_py_t *type = module != NULL ? gp_py.get_attr(module, "Thread") : NULL;
    gp_py_t *property = type != NULL ? gp_py.get_attr(type, "name") : NULL;
    gp_py_t *get = property != NULL ? gp_py.get_attr(property, "fget") : NULL;
    gp_py_t *set = get != NULL ? gp_py.get_attr(property, "fset") : NULL;
    bool is_ours = set == NULL || (gp_py_type(set) == gp_py.builtin_type && gp_py_definition(set) == mine);
    gp_py_t *function = !is_ours && set != gp_py.none ? gp_py.function_new(mine, set, NULL) : NULL;
    gp_py_t *other = function != NULL ? gp_py.call(gp_py_type(property), get, function, NULL) : NULL;
    if (other != NULL)
        gp_py.set_attr(type, "name", other);
    gp_py.error_clear();
    gp_py_t *all[] = {type, property, get, set, function, other};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        gp_py.drop(all[i]);
}

// Returns whether threading is there.
static bool thread_names_look(void)
{
    static gp_py_method_t native = {"greenprof", NULL, KINDS, NULL}, setter = {"greenprof", NULL, KINDS, NULL};
    gp_py_t *error[3];
    native.function = (void *)(uintptr_t)thread_names_on_native_id;
    setter.function = (void *)(uintptr_t)thread_names_on_name;
    if (gp_py.dict_get(gp_py.module_dict(), threading) == NULL)
        return false;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    bool is_there = gp_pools_replace(threading, "Thread", "_set_native_id", &native, true);
    if (is_there)
        thread_names_replace_setter(&setter);
    gp_py.error_restore(error[0], error[1], error[2]);
    return is_there;
}

static gp_py_t *thread_names_start(call_t *real, gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    thread_names_look();
    gp_py_t *handed = gp_thread_calls_hand_over(args), *result = real(self, handed != NULL ? handed : args, keywords);
    gp_py.drop(handed);
    return result;
}

static gp_py_t *thread_names_on_start(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    return thread_names_start(real_start, self, args, keywords);
}

static gp_py_t *thread_names_on_joinable(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    return thread_names_start(real_joinable, self, args, keywords);
}

static void thread_names_wrap(gp_py_method_t *method, call_t **real, call_t *mine)
{
    if (*real != NULL || method == NULL || !(method->flags & GP_PY_VARARGS))
        return;
    *real = (call_t *)(uintptr_t)method->function;
    method->function = (void *)(uintptr_t)mine;
}

static void thread_names_made(void *definition)
{
    thread_names_wrap(gp_py_method_of(definition, "start_new_thread"), &real_start, thread_names_on_start);
    thread_names_wrap(gp_py_method_of(definition, "start_joinable_thread"), &real_joinable, thread_names_on_joinable);
}

void gp_thread_names_prepare(void)
{
    gp_inittab_watch("_thread", thread_names_made);
}

// Threads that began before: the dictionary is copied, as its lock may be held by whom this has interrupted.
static void thread_names_give_all(void)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), threading);
    gp_py_t *active = module != NULL ? gp_py.get_attr(module, "_active") : NULL;
    gp_py_t *copy = active != NULL ? gp_py.call_method(active, "copy", NULL) : NULL, *item;
    for (int i = 0; copy != NULL && i < ACTIVE_MAX && (item = gp_py.call_method(copy, "popitem", NULL)) != NULL; i++) {
        gp_py_t *object = gp_py.tuple_item(item, 1);
        gp_thread_t *thread = object != NULL ? thread_names_thread_of(object) : NULL;
        pid_t tid = object != NULL ? thread_names_tid_of(object) : 0;
        char name[GP_CORO_NAME_SIZE];
        bool is_named = tid > 0 && tid != getpid() && gp_thread_names_read(object, name);
        if (is_named && thread != NULL)
            thread_names_give(thread, name);
        else if (is_named)
            thread_names_let_wait(tid, name);
        gp_py.drop(item);
    }
    gp_py.error_clear();
    gp_py.drop(copy);
    gp_py.drop(active);
}

void gp_thread_names_watch(void)
{
    gp_py_t *error[3], *module = gp_py.dict_get(gp_py.module_dict(), "_thread");
    if (module != NULL) {
        thread_names_wrap(gp_py_method(module, "start_new_thread"), &real_start, thread_names_on_start);
        thread_names_wrap(gp_py_method(module, "start_joinable_thread"), &real_joinable, thread_names_on_joinable);
    }
    if (!thread_names_look())
        return;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    thread_names_give_all();
    gp_py.error_restore(error[0], error[1], error[2]);
}
