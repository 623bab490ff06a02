// SPDX-License-Identifier: MIT
#include "interpreter/lock_objects.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/peek.h"
#include "interpreter/api.h"
#include "signal/language.h"

enum {
    BYTE = 16,          // PyMutex in both objects
    OWNER = 24,         // unsigned long long of an RLock: pthread_self() of its owner
    LEVEL = 32,         // size_t of an RLock: how often its owner took it again
    FIVE_WORDS = 0x200, // METH_METHOD: one more than are passed on here
    PARKED = 8,         // of struct wait_entry: `addr` comes before the semaphore
};

// METHOD(number, TYPE, name, what the call does)
#define LOCK_OBJECTS_METHODS(METHOD)                                                                                   \
    METHOD(0, PLAIN, "acquire", take)                                                                                  \
    METHOD(1, PLAIN, "acquire_lock", take)                                                                             \
    METHOD(2, PLAIN, "__enter__", take)                                                                                \
    METHOD(3, PLAIN, "release", give)                                                                                  \
    METHOD(4, PLAIN, "release_lock", give)                                                                             \
    METHOD(5, PLAIN, "__exit__", give)                                                                                 \
    METHOD(6, AGAIN, "acquire", take)                                                                                  \
    METHOD(7, AGAIN, "__enter__", take)                                                                                \
    METHOD(8, AGAIN, "_acquire_restore", take)                                                                         \
    METHOD(9, AGAIN, "release", give_again)                                                                            \
    METHOD(10, AGAIN, "__exit__", give_again)                                                                          \
    METHOD(11, AGAIN, "_release_save", give_all)

enum { PLAIN_BYTES = 24, AGAIN_BYTES = 40 }; // of objects with such a lock; else there is a semaphore in them
enum { PLAIN, AGAIN, TYPES, METHODS = 12, MAKERS = 2 };

// Any of the interpreter's calling conventions: four words at most, of which some are not there.
typedef gp_py_t *call_t(gp_py_t *self, void *second, void *third, void *fourth);

static const gp_lock_events_t *lock_events;
static _Atomic uintptr_t types[TYPES];
static call_t *calls[METHODS], *makers[MAKERS], *new_of[TYPES];
static gp_py_method_t *definitions[METHODS], *maker_definitions[MAKERS];

static gp_py_t *lock_objects_take(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    gp_py_t *result = call(self, second, third, fourth);
    if (result == gp_py.true_object || result == gp_py.none)
        lock_events->took((uintptr_t)self);
    return result;
}

static gp_py_t *lock_objects_give(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    lock_events->gives((uintptr_t)self);
    return call(self, second, third, fourth);
}

static bool lock_objects_is_owner(const gp_py_t *self)
{
    unsigned long long owner = *(const unsigned long long *)(const void *)((const char *)self + OWNER);
    return owner == (unsigned long long)pthread_self();
}

// Others are refused.
static gp_py_t *lock_objects_give_all(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    bool is_owner = lock_objects_is_owner(self);
    return is_owner ? lock_objects_give(call, self, second, third, fourth) : call(self, second, third, fourth);
}

static gp_py_t *lock_objects_give_again(call_t *call, gp_py_t *self, void *second, void *third, void *fourth)
{
    bool is_last = *(const size_t *)(const void *)((const char *)self + LEVEL) == 0;
    return is_last ? lock_objects_give_all(call, self, second, third, fourth) : call(self, second, third, fourth);
}

#define LOCK_OBJECTS_CALL(number, type, method, does)                                                                  \
    static gp_py_t *lock_objects_call_##number(gp_py_t *self, void *second, void *third, void *fourth)                 \
    {                                                                                                                  \
        return lock_objects_##does(calls[number], self, second, third, fourth);                                        \
    }
LOCK_OBJECTS_METHODS(LOCK_OBJECTS_CALL)

static gp_py_t *lock_objects_made(gp_py_t *object)
{
    if (object != NULL)
        lock_events->made((uintptr_t)object);
    return object;
}

static gp_py_t *lock_objects_make_0(gp_py_t *module, void *second, void *third, void *fourth)
{
    return lock_objects_made(makers[0](module, second, third, fourth));
}

static gp_py_t *lock_objects_make_1(gp_py_t *module, void *second, void *third, void *fourth)
{
    return lock_objects_made(makers[1](module, second, third, fourth));
}

static gp_py_t *lock_objects_new_plain(gp_py_t *type, void *arguments, void *names, void *unused)
{
    return lock_objects_made(new_of[PLAIN](type, arguments, names, unused));
}

static gp_py_t *lock_objects_new_again(gp_py_t *type, void *arguments, void *names, void *unused)
{
    return lock_objects_made(new_of[AGAIN](type, arguments, names, unused));
}

static const struct {
    const char *name;
    int type;
    call_t *mine;
} lock_methods[METHODS] = {
#define LOCK_OBJECTS_ROW(number, type, method, does) {method, type, lock_objects_call_##number},
    LOCK_OBJECTS_METHODS(LOCK_OBJECTS_ROW)};

static call_t *const my_makers[MAKERS] = {lock_objects_make_0, lock_objects_make_1};
static call_t *const my_new[TYPES] = {lock_objects_new_plain, lock_objects_new_again};

static void lock_objects_put(void **place, call_t *mine, call_t *before, bool is_attached)
{
    __atomic_store_n(place, (void *)(uintptr_t)(is_attached ? mine : before), __ATOMIC_RELEASE);
}

void gp_lock_objects_follow(bool is_attached)
{
    for (size_t i = 0; i < METHODS; i++)
        if (definitions[i] != NULL)
            lock_objects_put(&definitions[i]->function, lock_methods[i].mine, calls[i], is_attached);
    for (size_t i = 0; i < MAKERS; i++)
        if (maker_definitions[i] != NULL)
            lock_objects_put(&maker_definitions[i]->function, my_makers[i], makers[i], is_attached);
}

// Types that were derived before have a copy of tp_new, and the interpreter compares the two: so it stays replaced,
// also after a detach, in all of them.
static void lock_objects_replace_new(gp_py_t *type, size_t which)
{
    void **slot = gp_py_slot(type, GP_PY_TYPE_NEW);
    if (*slot == (void *)(uintptr_t)new_of[which])
        __atomic_store_n(slot, (void *)(uintptr_t)my_new[which], __ATOMIC_RELEASE);
    gp_py_t *derived = gp_py.call_method(type, "__subclasses__", NULL);
    for (ptrdiff_t i = 0; derived != NULL && i < gp_py.list_size(derived); i++)
        lock_objects_replace_new(gp_py.list_item(derived, i), which);
    if (derived == NULL)
        gp_py.error_clear();
    gp_py.drop(derived);
}

void gp_lock_objects_find(const gp_lock_events_t *events)
{
    static const size_t sizes[TYPES] = {PLAIN_BYTES, AGAIN_BYTES};
    static const char *const names[TYPES] = {"lock", "RLock"}, *const functions[MAKERS] = {"allocate_lock", "allocate"};
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), "_thread");
    if (lock_events != NULL || module == NULL)
        return;
    lock_events = events;
    for (size_t i = 0; i < TYPES; i++) {
        gp_py_t *type = gp_py_type_in("_thread", names[i]); // kept: its locks may outlive the module
        if (type == NULL || *gp_py_size(type) != sizes[i]) {
            gp_py.drop(type);
            continue;
        }
        new_of[i] = (call_t *)(uintptr_t)*gp_py_slot(type, GP_PY_TYPE_NEW);
        if (new_of[i] != NULL)
            lock_objects_replace_new(type, i);
        atomic_store_explicit(&types[i], (uintptr_t)type, memory_order_release);
    }
    for (size_t i = 0; i < METHODS; i++) {
        bool is_there = atomic_load_explicit(&types[lock_methods[i].type], memory_order_relaxed) != 0;
        gp_py_method_t *method =
            is_there ? gp_py_method_in("_thread", names[lock_methods[i].type], lock_methods[i].name) : NULL;
        if (method != NULL && method->flags & FIVE_WORDS)
            method = NULL;
        definitions[i] = method;
        calls[i] = method != NULL ? (call_t *)(uintptr_t)method->function : NULL;
    }
    for (size_t i = 0; i < MAKERS && types[PLAIN] != 0; i++) {
        maker_definitions[i] = gp_py_method(module, functions[i]);
        makers[i] = maker_definitions[i] != NULL ? (call_t *)(uintptr_t)maker_definitions[i]->function : NULL;
    }
    gp_lock_objects_follow(!atomic_load_explicit(&gp_language_is_left, memory_order_relaxed));
}

bool gp_lock_objects_are_all(void)
{
    return atomic_load_explicit(&types[PLAIN], memory_order_acquire) != 0 &&
           atomic_load_explicit(&types[AGAIN], memory_order_acquire) != 0;
}

uintptr_t gp_lock_objects_parked(const void *semaphore)
{
    uintptr_t address = 0, type = 0;
    if (atomic_load_explicit(&types[PLAIN], memory_order_acquire) == 0 ||
        !gp_peek((uintptr_t)semaphore - PARKED, &address, sizeof(address)) || address <= BYTE ||
        !gp_peek(address - BYTE + sizeof(uintptr_t), &type, sizeof(type)) || type == 0)
        return 0;
    for (size_t i = 0; i < TYPES; i++)
        if (type == atomic_load_explicit(&types[i], memory_order_acquire))
            return address - BYTE;
    return 0;
}
