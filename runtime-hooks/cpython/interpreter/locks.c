// SPDX-License-Identifier: MIT
#include "interpreter/locks.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/peek.h"
#include "collect/functions.h"
#include "collect/lock_words.h"
#include "interpreter/api.h"
#include "interpreter/awaits.h"
#include "interpreter/frame_walk.h"
#include "interpreter/lock_objects.h"
#include "interpreter/lock_place.h"
#include "interpreter/lock_table.h"
#include "interpreter/redirect.h"
#include "signal/gil_wait.h"
#include "signal/handler.h"

enum {
    OUTWARDS = 4,
    LOOK_NS = 1000000, // a lock's holder is looked at from outside no more often
};

#define RELAXED memory_order_relaxed

// --- names

static const char *locks_base(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

uint64_t gp_locks_locate(uintptr_t word, uint64_t loc)
{
    char text[512];
    bool is_lock = word & 1;
    const gp_function_name_t *function =
        GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE ? gp_functions_at(GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(loc))) : NULL;
    if (function == NULL)
        return is_lock ? gp_lock_word_name("[lock ?]", sizeof("[lock ?]") - 1) : GP_LOC_OWN;
    uint32_t line = GP_LANGUAGE_LINE(GP_LOC_OFFSET(loc));
    line = line != 0 ? line : function->first_line;
    int length = is_lock ? snprintf(text, sizeof(text), "[lock %.200s:%u]", locks_base(function->file), line)
                         : snprintf(text, sizeof(text), "[in %.200s (%.200s:%u)]", function->name,
                                    locks_base(function->file), line);
    return gp_lock_word_name(text, (size_t)length);
}

// A code object's address / 8 is even: bit 0 tells the lock's name from its holder's code.
static uintptr_t locks_word(uintptr_t place, bool is_lock)
{
    return (place & ~(uintptr_t)GP_LANGUAGE_ENTRY) | (uintptr_t)1 << GP_LOCKS_MARK | is_lock;
}

// --- what each thread does

// Other processes give it as well: one of multiprocessing, which an interpreter may have built in. Source: glibc's
// sysdeps/nptl/internaltypes.h, struct new_sem.
static bool locks_is_shared(const sem_t *lock)
{
    int shared;
    memcpy(&shared, (const char *)lock + sizeof(uint64_t), sizeof(shared));
    return shared != 0;
}

// The calling thread, where what it does with locks is noted.
static gp_thread_t *locks_self(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_handler_sampling, RELAXED) ? gp_thread_self : NULL;
    return thread != NULL && thread->root != NULL && gp_cpython_runtime.is_trusted ? thread : NULL;
}

// NULL also where semaphores are no locks.
static gp_thread_t *locks_thread(const sem_t *lock)
{
    gp_thread_t *thread = gp_lock_objects_are_all() ? NULL : locks_self();
    return thread != NULL && !locks_is_shared(lock) ? thread : NULL;
}

// Threads that wait for it may look at what its owner runs.
static void locks_took(gp_thread_t *thread, uintptr_t lock)
{
    gp_lock_slot_t *slot = gp_lock_slot_claim(lock);
    if (slot != NULL)
        atomic_store_explicit(&slot->owner, thread->index, RELAXED);
    if (atomic_load_explicit(&thread->language.state, RELAXED) == 0)
        atomic_store_explicit(&thread->language.state, (uintptr_t)gp_cpython_runtime.thread_state(), RELAXED);
}

// SimpleQueue.get() takes its lock twice, for a put() to give it; with the interpreter lock, so that no other
// thread comes between. A Condition asks in this way whether it is the owner.
static void locks_found_taken(const gp_thread_t *thread, const sem_t *lock)
{
    uintptr_t word;
    gp_lock_slot_t *slot = gp_lock_slot_find((uintptr_t)lock);
    if (slot != NULL && atomic_load_explicit(&slot->owner, RELAXED) == thread->index &&
        gp_cpython_walk_frames(gp_cpython_read_own, gp_cpython_leaf(), 0, &word, 1) == 1 &&
        gp_lock_place_caller(word) != GP_LOCK_OF_LIBRARY)
        atomic_store_explicit(&slot->is_doubtful, true, RELAXED);
}

static int locks_on_trywait(sem_t *lock)
{
    int result = sem_trywait(lock);
    gp_thread_t *thread = locks_thread(lock);
    if (thread != NULL && result == 0)
        locks_took(thread, (uintptr_t)lock);
    else if (thread != NULL)
        locks_found_taken(thread, lock);
    return result;
}

static void locks_gives(const gp_thread_t *thread, uintptr_t lock)
{
    gp_lock_slot_t *slot = gp_lock_slot_find(lock);
    gp_lock_give_t give = {0};
    if (slot != NULL && gp_lock_slot_leave(slot, thread->index, &give.by_owner)) {
        give.ticks = gp_ticks();
        give.thread = thread->index;
        give.code = gp_lock_place_own(false);
        gp_lock_slot_give(slot, &give);
    }
}

static int locks_on_post(sem_t *lock)
{
    const gp_thread_t *thread = locks_thread(lock);
    if (thread != NULL)
        locks_gives(thread, (uintptr_t)lock);
    return sem_post(lock);
}

static void locks_made(uintptr_t lock, unsigned value)
{
    gp_lock_slot_t *slot = gp_lock_slot_claim(lock);
    if (slot == NULL)
        return;
    atomic_store_explicit(&slot->lock, 0, RELAXED); // as new, whatever was at this address
    slot = gp_lock_slot_claim(lock);
    if (slot != NULL && value == 0) // another thread gives it first
        atomic_store_explicit(&slot->is_event, true, RELAXED);
    else if (slot != NULL)
        atomic_store_explicit(&slot->maker, gp_lock_place_own(gp_py_has_lock()), RELAXED);
}

static int locks_on_init(sem_t *lock, int shared, unsigned value)
{
    if (shared == 0 && !gp_lock_objects_are_all() && locks_self() != NULL)
        locks_made((uintptr_t)lock, value);
    return sem_init(lock, shared, value); // the program's own call, whether it fails or not
}

static int locks_on_destroy(sem_t *lock)
{
    gp_lock_slot_t *slot = gp_lock_slot_find((uintptr_t)lock);
    if (slot != NULL)
        atomic_store_explicit(&slot->lock, 0, RELAXED);
    return sem_destroy(lock);
}

// --- waits

typedef struct wait {
    gp_thread_t *thread;
    gp_lock_slot_t *slot;
    size_t depth;
    unsigned flags;
    bool is_semaphore;
    uint32_t owner;    // as it began
    uintptr_t running; // frame word of what the owner ran then; 0 = not known
    uint64_t since;
} wait_t;

static const gp_thread_t *locks_find_thread(uint32_t index)
{
    const gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    while (thread != NULL && thread->index != index)
        thread = thread->next;
    return thread;
}

// The owner's frame at this moment: from outside, so that what is read may be torn.
static uintptr_t locks_look_at_owner(gp_lock_slot_t *slot, uint32_t owner, uint64_t now)
{
    uintptr_t frames[OUTWARDS];
    uint64_t looked = atomic_load_explicit(&slot->looked, RELAXED);
    const gp_thread_t *thread = NULL;
    if (owner != 0 && gp_ticks_to_ns(now - looked) >= LOOK_NS)
        thread = locks_find_thread(owner);
    uintptr_t state = thread != NULL ? atomic_load_explicit(&thread->language.state, RELAXED) : 0;
    if (state == 0)
        return 0;
    atomic_store_explicit(&slot->looked, now, RELAXED);
    return gp_lock_place_of(frames,
                            gp_cpython_walk_frames(gp_peek, gp_cpython_leaf_of(gp_peek, state), 0, frames, OUTWARDS));
}

// Is it a lock's, as far as its beginning tells?
static bool locks_is_wait(wait_t *wait, const uintptr_t *frames)
{
    gp_lock_slot_t *slot = wait->slot;
    if (wait->depth == 0) // a thread of the interpreter's own
        return false;
    enum gp_lock_caller caller = gp_lock_place_caller(frames[0]);
    wait->is_semaphore =
        caller == GP_LOCK_OF_CONDITION && wait->depth > 1 && gp_lock_place_caller(frames[1]) == GP_LOCK_OF_SEMAPHORE;
    if (caller == GP_LOCK_OF_CONDITION || caller == GP_LOCK_OF_JOIN || caller == GP_LOCK_OF_WORKER)
        return wait->is_semaphore;
    return !atomic_load_explicit(&slot->is_event, RELAXED) && !atomic_load_explicit(&slot->is_doubtful, RELAXED) &&
           wait->owner != wait->thread->index;
}

static void locks_put(gp_thread_lock_t *lock, uintptr_t word)
{
    if (lock->count < GP_LOCK_WORDS)
        __atomic_store_n(&lock->words[lock->count++], word, __ATOMIC_RELAXED);
}

// Innermost first.
static void locks_set_words(const wait_t *wait, uint32_t holder, uintptr_t running, bool is_timed)
{
    gp_thread_lock_t *lock = &wait->thread->gil.lock;
    uintptr_t maker = wait->is_semaphore ? 0 : atomic_load_explicit(&wait->slot->maker, RELAXED);
    if (maker == 0)
        maker = gp_lock_place_of(wait->thread->parked_frames, wait->depth);
    lock->count = 0;
    if (holder != 0 && running != 0)
        locks_put(lock, locks_word(running, false));
    if (holder != 0)
        locks_put(lock, gp_lock_word_thread(holder));
    if (is_timed)
        locks_put(lock, gp_lock_word_timed());
    locks_put(lock, locks_word(maker, true));
}

// Returns false where the wait is no lock's.
static bool locks_begin(wait_t *wait, uintptr_t lock, bool is_timed)
{
    gp_thread_t *thread = wait->thread;
    size_t max = atomic_load_explicit(&gp_handler_depth, RELAXED);
    wait->slot = gp_lock_slot_claim(lock);
    if (wait->slot == NULL || max <= GP_LOCK_WORDS)
        return false;
    wait->owner = atomic_load_explicit(&wait->slot->owner, RELAXED);
    wait->depth = gp_cpython_walk_own(thread->parked_frames, max - GP_LOCK_WORDS, &wait->flags);
    if (!locks_is_wait(wait, thread->parked_frames))
        return false;
    if (!wait->is_semaphore && atomic_load_explicit(&wait->slot->maker, RELAXED) == 0)
        atomic_store_explicit(&wait->slot->maker, gp_lock_place_of(thread->parked_frames, wait->depth), RELAXED);
    wait->since = gp_ticks();
    uint32_t holder = wait->is_semaphore ? 0 : wait->owner;
    wait->running = locks_look_at_owner(wait->slot, holder, wait->since);
    locks_set_words(wait, holder, wait->running, is_timed);
    __atomic_store_n(&thread->gil.lock.owner, wait->is_semaphore ? NULL : &wait->slot->owner, __ATOMIC_RELAXED);
    atomic_fetch_add_explicit(&wait->slot->waiters, 1, RELAXED);
    gp_lock_wait_begin(thread, wait->since);
    return true;
}

static void locks_end(const wait_t *wait, bool has_it, bool is_timed)
{
    uint64_t now = gp_ticks();
    gp_lock_slot_t *slot = wait->slot;
    atomic_fetch_sub_explicit(&slot->waiters, 1, RELAXED);
    uint32_t owner = has_it || wait->is_semaphore ? 0 : atomic_load_explicit(&slot->owner, RELAXED);
    gp_lock_held_t held = gp_lock_slot_held(slot, wait->since, now, owner);
    bool is_lock = wait->is_semaphore || held.given == 0 || held.by_owner;
    if (held.thread == 0 && !wait->is_semaphore)
        held.thread = wait->owner; // the owner as the wait began
    uint64_t late = has_it && held.given != 0 ? now - held.given : 0;
    uint64_t ticks = gp_lock_wait_end(wait->thread, now, late, is_lock);
    if (ticks == 0)
        return;
    bool is_first = held.thread == wait->owner && wait->running != 0;
    locks_set_words(wait, held.thread, is_first ? wait->running : held.code, is_timed && !has_it);
    const gp_thread_lock_t *lock = &wait->thread->gil.lock;
    const gp_lock_stack_t stack = {lock->words, wait->thread->parked_frames, lock->count, wait->depth, wait->flags};
    gp_lock_wait_sample(wait->thread, now, ticks, &stack);
}

typedef int locks_call_t(sem_t *lock, clockid_t clock, const struct timespec *until);

static int locks_wait(sem_t *lock, clockid_t clock, const struct timespec *until, locks_call_t *call)
{
    wait_t wait = {.thread = locks_self()};
    uintptr_t object = wait.thread != NULL ? gp_lock_objects_parked(lock) : 0; // which has been tried
    if (object == 0)
        wait.thread = locks_thread(lock);
    if (wait.thread == NULL)
        return call(lock, clock, until);
    int error = errno; // which success leaves as it is
    int result = object == 0 ? sem_trywait(lock) : -1;
    if (result != 0) {
        bool is_wait = locks_begin(&wait, object != 0 ? object : (uintptr_t)lock, until != NULL);
        result = call(lock, clock, until);
        error = result != 0 ? errno : error;
        if (is_wait)
            locks_end(&wait, result == 0, until != NULL);
    }
    if (result == 0 && object == 0)
        locks_took(wait.thread, (uintptr_t)lock);
    errno = error;
    return result;
}

static int locks_call_wait(sem_t *lock, clockid_t clock, const struct timespec *until)
{
    (void)clock, (void)until;
    return sem_wait(lock);
}

static int locks_call_timedwait(sem_t *lock, clockid_t clock, const struct timespec *until)
{
    (void)clock;
    return sem_timedwait(lock, until);
}

static int locks_on_wait(sem_t *lock)
{
    return locks_wait(lock, CLOCK_REALTIME, NULL, locks_call_wait);
}

static int locks_on_timedwait(sem_t *lock, const struct timespec *until)
{
    return locks_wait(lock, CLOCK_REALTIME, until, locks_call_timedwait);
}

static int locks_on_clockwait(sem_t *lock, clockid_t clock, const struct timespec *until)
{
    return locks_wait(lock, clock, until, sem_clockwait);
}

// --- locks that are objects

static void locks_on_object_taken(uintptr_t lock)
{
    gp_thread_t *thread = locks_self();
    if (thread != NULL)
        locks_took(thread, lock);
}

static void locks_on_object_given(uintptr_t lock)
{
    const gp_thread_t *thread = locks_self();
    if (thread != NULL)
        locks_gives(thread, lock);
}

static void locks_on_object_made(uintptr_t lock)
{
    bool is_noted = locks_self() != NULL;
    gp_lock_slot_t *slot = is_noted ? NULL : gp_lock_slot_find(lock);
    if (slot != NULL) // of another lock, which was at this address
        atomic_store_explicit(&slot->lock, 0, memory_order_relaxed);
    if (is_noted)
        locks_made(lock, 1);
}

void gp_locks_find(void)
{
    static const gp_lock_events_t events = {
        .gives = locks_on_object_given, .took = locks_on_object_taken, .made = locks_on_object_made};
    gp_lock_objects_find(&events);
}

void gp_locks_follow(bool is_attached)
{
    static const gp_redirection_t in[] = {
        {"sem_init", (void *)(uintptr_t)locks_on_init},
        {"sem_destroy", (void *)(uintptr_t)locks_on_destroy},
        {"sem_trywait", (void *)(uintptr_t)locks_on_trywait},
        {"sem_wait", (void *)(uintptr_t)locks_on_wait},
        {"sem_timedwait", (void *)(uintptr_t)locks_on_timedwait},
        {"sem_clockwait", (void *)(uintptr_t)locks_on_clockwait},
        {"sem_post", (void *)(uintptr_t)locks_on_post},
    };
    static const gp_redirection_t out[] = {
        {"sem_init", (void *)(uintptr_t)sem_init},           {"sem_destroy", (void *)(uintptr_t)sem_destroy},
        {"sem_trywait", (void *)(uintptr_t)sem_trywait},     {"sem_wait", (void *)(uintptr_t)sem_wait},
        {"sem_timedwait", (void *)(uintptr_t)sem_timedwait}, {"sem_clockwait", (void *)(uintptr_t)sem_clockwait},
        {"sem_post", (void *)(uintptr_t)sem_post},
    };
    static bool is_told_of_forks;
    if (!is_told_of_forks)
        is_told_of_forks = pthread_atfork(NULL, NULL, gp_lock_table_begin_anew) == 0;
    gp_lock_objects_follow(is_attached);
    gp_redirect((const void *)gp_cpython_runtime.loop, // NOLINT(performance-no-int-to-ptr)
                is_attached ? in : out, sizeof(in) / sizeof(in[0]));
}
