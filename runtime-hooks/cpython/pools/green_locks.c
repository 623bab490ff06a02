// SPDX-License-Identifier: MIT
#include "pools/green_locks.h"

#include <string.h>

#include "collect/lock_words.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/awaits.h"
#include "interpreter/frame_walk.h"
#include "interpreter/lock_place.h"
#include "interpreter/lock_table.h"
#include "interpreter/locks.h"
#include "pools/pool_calls.h"
#include "pools/pool_names.h"
#include "signal/ledger_edges.h"
#include "signal/lock_park.h"

enum {
    FIVE_WORDS = 0x200, // METH_METHOD: one more than are passed on here
    OUTWARDS = 2,
    KINDS = GP_PY_VARARGS | GP_PY_KEYWORDS,
};

#define RELAXED memory_order_relaxed

// --- owners

static uint32_t green_locks_owner(const prof_coro_t *coro)
{
    return coro->kind == GP_CORO_THREAD ? gp_thread_self->index : coro->number | GP_LOCK_OF_COROUTINE;
}

// NULL = nothing is noted.
static prof_coro_t *green_locks_self(void)
{
    bool is_wanted =
        __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_cpython_runtime.is_trusted && gp_cpython_is_main();
    return is_wanted ? gp_greenlet_spawner() : NULL;
}

static void green_locks_took(const gp_py_t *lock, const prof_coro_t *coro)
{
    gp_lock_slot_t *slot = gp_lock_slot_claim((uintptr_t)lock);
    if (slot == NULL)
        return;
    atomic_store_explicit(&slot->owner, green_locks_owner(coro), RELAXED);
    atomic_store_explicit(&slot->taker, gp_lock_place_own(false), RELAXED);
}

static void green_locks_gives(const gp_py_t *lock)
{
    const prof_coro_t *coro = green_locks_self();
    gp_lock_slot_t *slot = coro != NULL ? gp_lock_slot_find((uintptr_t)lock) : NULL;
    if (slot == NULL)
        return;
    gp_lock_give_t give = {.thread = green_locks_owner(coro)};
    bool is_taker = atomic_load_explicit(&slot->owner, RELAXED) == give.thread;
    if (!gp_lock_slot_leave(slot, give.thread, &give.by_owner))
        return;
    give.code = is_taker ? atomic_load_explicit(&slot->taker, RELAXED) : gp_lock_place_own(false);
    give.ticks = gp_ticks();
    gp_lock_slot_give(slot, &give);
}

static void green_locks_made(const gp_py_t *lock)
{
    bool is_noted = green_locks_self() != NULL;
    gp_lock_slot_t *slot = is_noted ? gp_lock_slot_anew((uintptr_t)lock) : NULL;
    if (slot != NULL)
        atomic_store_explicit(&slot->maker, gp_lock_place_own(true), RELAXED);
}

// --- waits

static uintptr_t green_locks_holder_word(uint32_t holder)
{
    return holder & GP_LOCK_OF_COROUTINE ? gp_lock_word_coro(holder & ~(uint32_t)GP_LOCK_OF_COROUTINE)
                                         : gp_lock_word_thread(holder);
}

// Innermost first.
static size_t green_locks_tell(prof_coro_t *coro, uint64_t since, uint64_t now, bool is_over, uintptr_t *words)
{
    const gp_coro_lock_t wait = gp_coro_rare(coro)->lock;
    gp_lock_slot_t *slot = (gp_lock_slot_t *)wait.lock; // NOLINT(performance-no-int-to-ptr)
    uint32_t owner = atomic_load_explicit(&slot->owner, RELAXED);
    gp_lock_held_t held = gp_lock_slot_held(slot, since, now, owner);
    uintptr_t code = held.code, maker = atomic_load_explicit(&slot->maker, RELAXED);
    uint32_t holder = held.thread != 0 ? held.thread : wait.owner;
    size_t count = 0;
    if (code == 0 && holder == owner)
        code = atomic_load_explicit(&slot->taker, RELAXED);
    if (is_over && wait.ends_with_wait) {
        gp_lock_park_end(&gp_coro_rare(coro)->lock);
        if (owner == 0 && wait.takes) {
            atomic_store_explicit(&slot->taker, wait.place, RELAXED);
            atomic_store_explicit(&slot->owner, coro->number | GP_LOCK_OF_COROUTINE, RELAXED);
        }
    }
    bool is_event = !wait.is_many && held.given != 0 && !held.by_owner;
    if (is_event || wait.epoch != gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks))
        return 0;
    if (holder != 0 && code != 0)
        words[count++] = gp_locks_word(code, false);
    if (holder != 0)
        words[count++] = green_locks_holder_word(holder);
    if (wait.is_timed && (!is_over || owner != 0))
        words[count++] = gp_lock_word_timed();
    words[count++] = gp_locks_word(maker != 0 ? maker : wait.place, true);
    return count;
}

// Code of threading.py waits for something else than a lock; but threading.Semaphore, which waits for its condition's
// notice, is the lock itself.
static enum gp_lock_caller green_locks_caller(void)
{
    uintptr_t frames[OUTWARDS];
    size_t depth = gp_cpython_walk_frames(gp_cpython_read_own, gp_cpython_leaf(), 0, frames, OUTWARDS);
    enum gp_lock_caller caller = depth > 0 ? gp_lock_place_caller(frames[0]) : GP_LOCK_OF_PROGRAM;
    bool is_notice =
        caller == GP_LOCK_OF_CONDITION && depth > 1 && gp_lock_place_caller(frames[1]) == GP_LOCK_OF_SEMAPHORE;
    return is_notice ? GP_LOCK_OF_SEMAPHORE : caller;
}

// The coroutine is about to take the lock, and may park for that. Returns whether gp_lock_park_end() is to follow.
static bool green_locks_begin(const gp_py_t *lock, prof_coro_t *coro, gp_coro_lock_t wait)
{
    gp_coro_lock_t *there = &gp_coro_rare(coro)->lock;
    gp_lock_slot_t *slot = coro->kind != GP_CORO_THREAD ? gp_lock_slot_claim((uintptr_t)lock) : NULL;
    bool is_open = atomic_load_explicit(&there->tell, RELAXED) != NULL, is_notice = false;
    if (slot == NULL || (is_open && !there->ends_with_wait)) // a method calls another one
        return false;
    if (is_open)
        gp_lock_park_end(there);
    wait.owner = atomic_load_explicit(&slot->owner, RELAXED);
    if (!wait.is_many) {
        enum gp_lock_caller caller = green_locks_caller();
        is_notice = caller == GP_LOCK_OF_SEMAPHORE;
        if (!is_notice && (caller == GP_LOCK_OF_CONDITION || caller == GP_LOCK_OF_JOIN ||
                           wait.owner == green_locks_owner(coro) || atomic_load_explicit(&slot->is_event, RELAXED)))
            return false;
    }
    there->place = gp_lock_place_own(false);
    if (is_notice)
        atomic_store_explicit(&slot->maker, 0, RELAXED);
    else if (atomic_load_explicit(&slot->maker, RELAXED) == 0)
        atomic_store_explicit(&slot->maker, there->place, RELAXED);
    there->lock = (uintptr_t)slot;
    there->waiters = &slot->waiters;
    there->takes =
        gp_lock_place_caller(there->place) != GP_LOCK_OF_LIBRARY; // else a task of wait_for(), for another one
    there->epoch = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    there->owner = is_notice ? 0 : wait.owner;
    there->is_timed = wait.is_timed;
    there->is_many = wait.is_many || is_notice;
    there->ends_with_wait = wait.ends_with_wait;
    atomic_fetch_add_explicit(&slot->waiters, 1, RELAXED);
    // Release: partner of the acquire in gp_lock_park_words().
    atomic_store_explicit(&there->tell, green_locks_tell, memory_order_release);
    return true;
}

static bool green_locks_is_many(gp_py_t *lock)
{
    const char *name = gp_py_type_name(lock), end[] = "Semaphore";
    size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

typedef struct taking { // a call that takes a lock
    gp_py_t *lock;
    prof_coro_t *coro; // NULL = nothing is noted
    bool may_wait;
} taking_t;

static taking_t green_locks_before(gp_py_t *lock, bool is_timed)
{
    taking_t taking = {.lock = lock, .coro = green_locks_self()};
    if (taking.coro != NULL)
        taking.may_wait = green_locks_begin(
            lock, taking.coro, (gp_coro_lock_t){.is_timed = is_timed, .is_many = green_locks_is_many(lock)});
    return taking;
}

static gp_py_t *green_locks_after(const taking_t *taking, gp_py_t *result)
{
    if (taking->may_wait)
        gp_lock_park_end(&gp_coro_rare(taking->coro)->lock);
    if (taking->coro != NULL && (result == gp_py.true_object || result == gp_py.none))
        green_locks_took(taking->lock, taking->coro);
    return result;
}

// --- eventlet: Python's

static gp_py_t *green_locks_first(gp_py_t *args)
{
    return gp_py.tuple_size(args) > 0 ? gp_py.tuple_item(args, 0) : NULL;
}

// Is there a timeout, which may be argument number `at`?
static bool green_locks_is_timed(gp_py_t *args, gp_py_t *keywords, ptrdiff_t at)
{
    gp_py_t *timeout = keywords != NULL ? gp_py.dict_get(keywords, "timeout") : NULL;
    if (timeout == NULL && gp_py.tuple_size(args) > at)
        timeout = gp_py.tuple_item(args, at);
    bool is_timed = timeout != NULL && timeout != gp_py.none && gp_py.number(timeout) >= 0;
    gp_py.error_clear();
    return is_timed;
}

// Semaphore.acquire(lock, blocking, timeout)
static gp_py_t *green_locks_on_acquire(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *lock = green_locks_first(args);
    if (lock == NULL)
        return gp_py.call_with(real, args, keywords);
    taking_t taking = green_locks_before(lock, green_locks_is_timed(args, keywords, 2));
    return green_locks_after(&taking, gp_py.call_with(real, args, keywords));
}

// release(lock), of asyncio as well
static gp_py_t *green_locks_on_release(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *lock = green_locks_first(args);
    if (lock != NULL)
        green_locks_gives(lock);
    return gp_py.call_with(real, args, keywords);
}

// __init__(lock), of asyncio as well
static gp_py_t *green_locks_on_init(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *lock = green_locks_first(args);
    if (lock != NULL)
        green_locks_made(lock);
    return gp_py.call_with(real, args, keywords);
}

// --- asyncio: Python's coroutine functions

// Will acquire() have it without a wait?
static bool green_locks_is_free(gp_py_t *lock)
{
    gp_lock_slot_t *slot = gp_lock_slot_claim((uintptr_t)lock);
    gp_py_t *value = NULL;
    bool is_many = green_locks_is_many(lock);
    if (slot == NULL || atomic_load_explicit(&slot->waiters, RELAXED) != 0 ||
        (!is_many && atomic_load_explicit(&slot->owner, RELAXED) != 0)) // a task of wait_for() has not begun
        return false;
    if ((value = gp_py.get_attr(lock, is_many ? "_value" : "_locked")) == NULL) {
        gp_py.error_clear();
        return false;
    }
    double number = gp_py.number(value); // of a truth value, too
    gp_py.drop(value);
    return is_many ? number > 0 : number == 0;
}

// acquire(lock)
static gp_py_t *green_locks_on_coroutine(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *lock = green_locks_first(args);
    const prof_coro_t *coro = lock != NULL ? green_locks_self() : NULL;
    if (coro != NULL && green_locks_is_free(lock))
        green_locks_took(lock, coro);
    return gp_py.call_with(real, args, keywords);
}

// _get_loop(lock), by acquire() before it waits
static gp_py_t *green_locks_on_wait(gp_py_t *real, gp_py_t *args, gp_py_t *keywords)
{
    gp_py_t *lock = green_locks_first(args);
    prof_coro_t *coro = lock != NULL ? green_locks_self() : NULL;
    if (coro != NULL)
        green_locks_begin(lock, coro, (gp_coro_lock_t){.is_many = true, .ends_with_wait = true});
    return gp_py.call_with(real, args, keywords);
}

// --- gevent: Cython's, each function with a definition of its own that all calls of it look at

// Any of the calling conventions: four words at most, of which some are not there.
typedef gp_py_t *call_t(gp_py_t *self, void *second, void *third, void *fourth);

#define GEVENT "gevent._gevent_c_semaphore"
enum { GEVENT_METHODS = 5 };
static call_t *gevent_calls[GEVENT_METHODS];
static gp_py_method_t *gevent_definitions[GEVENT_METHODS];
static bool gevent_has_tuple; // of arguments, and names

static gp_py_t *green_locks_enter(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    taking_t taking = green_locks_before(self, false);
    return green_locks_after(&taking, call(self, second, third, fourth));
}

static gp_py_t *green_locks_take(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    taking_t taking = green_locks_before(self, gevent_has_tuple && green_locks_is_timed(second, third, 1));
    return green_locks_after(&taking, call(self, second, third, fourth));
}

static gp_py_t *green_locks_give(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    green_locks_gives(self);
    return call(self, second, third, fourth);
}

// METHOD(number, type, name, what the call does)
#define GEVENT_METHODS_ALL(METHOD)                                                                                     \
    METHOD(0, "Semaphore", "acquire", take)                                                                            \
    METHOD(1, "Semaphore", "__enter__", enter)                                                                         \
    METHOD(2, "Semaphore", "release", give)                                                                            \
    METHOD(3, "Semaphore", "__exit__", give)                                                                           \
    METHOD(4, "BoundedSemaphore", "release", give)
#define GEVENT_CALL(number, type, method, does)                                                                        \
    static gp_py_t *green_locks_gevent_##number(gp_py_t *self, void *second, void *third, void *fourth)                \
    {                                                                                                                  \
        return green_locks_##does(gevent_calls[number], self, second, third, fourth);                                  \
    }
GEVENT_METHODS_ALL(GEVENT_CALL)

static const struct {
    const char *type, *name;
    call_t *mine;
} gevent_methods[GEVENT_METHODS] = {
#define GEVENT_ROW(number, type, method, does) {type, method, green_locks_gevent_##number},
    GEVENT_METHODS_ALL(GEVENT_ROW)};

// NULL = it is no function of Cython's.
static gp_py_method_t *green_locks_cython(const char *type_name, const char *name)
{
    gp_py_t *type = gp_py_type_in(GEVENT, type_name);
    gp_py_t *function = type != NULL ? gp_py.get_attr(type, name) : NULL; // the type keeps it
    gp_py_method_t *method = NULL;
    if (function != NULL && strstr(gp_py_type_name(function), "cython_function_or_method") != NULL)
        method = gp_py_definition(function); // which begins as a built-in one does
    if (function == NULL)
        gp_py.error_clear();
    gp_py.drop(function);
    gp_py.drop(type);
    return method != NULL && strcmp(method->name, name) == 0 && !(method->flags & FIVE_WORDS) ? method : NULL;
}

typedef int (*init_t)(gp_py_t *self, gp_py_t *args, gp_py_t *keywords);

static const char *const gevent_types[] = {"Semaphore", "BoundedSemaphore"};
enum { GEVENT_TYPES = 2 };
static init_t gevent_inits[GEVENT_TYPES];

static int green_locks_gevent_init(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    green_locks_made(self);
    return gevent_inits[0](self, args, keywords);
}

static int green_locks_gevent_init_bounded(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    green_locks_made(self);
    return gevent_inits[1](self, args, keywords);
}

static void green_locks_watch_inits(void)
{
    static const init_t mine[GEVENT_TYPES] = {green_locks_gevent_init, green_locks_gevent_init_bounded};
    for (size_t i = 0; i < GEVENT_TYPES; i++) {
        gp_py_t *type = gp_py_type_in(GEVENT, gevent_types[i]);
        void *before = type != NULL ? *gp_py_slot(type, GP_PY_TYPE_INIT) : NULL;
        gevent_inits[i] = (init_t)(uintptr_t)before;
        if (before != NULL)
            gp_py_replace_init(type, before, (void *)(uintptr_t)mine[i]);
        gp_py.drop(type);
    }
}

void gp_green_locks_follow(bool is_attached)
{
    for (size_t i = 0; i < GEVENT_METHODS; i++)
        if (gevent_definitions[i] != NULL)
            gevent_definitions[i]->function =
                (void *)(uintptr_t)(is_attached ? gevent_methods[i].mine : gevent_calls[i]);
}

static void green_locks_look_at_gevent(void)
{
    static bool is_done;
    if (is_done || gp_py.dict_get(gp_py.module_dict(), GEVENT) == NULL)
        return;
    for (size_t i = 0; i < GEVENT_METHODS; i++) {
        gp_py_method_t *method = green_locks_cython(gevent_methods[i].type, gevent_methods[i].name);
        if (method == NULL)
            continue;
        is_done = true;
        gevent_has_tuple = i == 0 ? method->flags == KINDS : gevent_has_tuple;
        gevent_definitions[i] = method;
        gevent_calls[i] = (call_t *)(uintptr_t)method->function;
    }
    if (is_done) {
        green_locks_watch_inits();
        gp_green_locks_follow(true);
    }
}

void gp_green_locks_look(void)
{
    static gp_py_method_t init = {"greenprof", NULL, KINDS, NULL}, acquire = {"greenprof", NULL, KINDS, NULL},
                          release = {"greenprof", NULL, KINDS, NULL}, coroutine = {"greenprof", NULL, KINDS, NULL},
                          wait = {"greenprof", NULL, KINDS, NULL};
    static bool has_lock, has_semaphore, has_eventlet, has_eventlet_lock;
    init.function = (void *)(uintptr_t)green_locks_on_init;
    acquire.function = (void *)(uintptr_t)green_locks_on_acquire;
    release.function = (void *)(uintptr_t)green_locks_on_release;
    coroutine.function = (void *)(uintptr_t)green_locks_on_coroutine;
    wait.function = (void *)(uintptr_t)green_locks_on_wait;
    const struct {
        const char *module, *type;
        bool *is_done;
        gp_py_method_t *acquire, *wait;
    } types[] = {{"asyncio.locks", "Lock", &has_lock, &coroutine, &wait},
                 {"asyncio.locks", "Semaphore", &has_semaphore, &coroutine, &wait},
                 {"eventlet.semaphore", "Semaphore", &has_eventlet, &acquire, NULL},
                 {"eventlet.lock", "Lock", &has_eventlet_lock, NULL, NULL}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        *types[i].is_done = *types[i].is_done ||
                            (gp_pools_replace(types[i].module, types[i].type, "release", &release, true) &&
                             (types[i].acquire == NULL ||
                              (gp_pools_replace(types[i].module, types[i].type, "acquire", types[i].acquire, true) &&
                               gp_pools_replace(types[i].module, types[i].type, "__init__", &init, true))) &&
                             (types[i].wait == NULL ||
                              gp_pools_replace(types[i].module, types[i].type, "_get_loop", types[i].wait, true)));
    green_locks_look_at_gevent();
}
