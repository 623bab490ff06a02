// SPDX-License-Identifier: MIT
#include "collect/lock_scan.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>

#include "base/peek.h"
#include "collect/lock_words.h"
#include "model/ring_record.h"
#include "signal/gil_wait.h"

enum { IS_WAITED_FOR = 2 }; // of the word of a lock

typedef struct lock {
    uintptr_t address;
    uint32_t owner; // its number for the kernel; 0 = not known
    bool is_timed;
} lock_t;

#ifdef __GLIBC__
enum { NOT_AN_OWNER = 0 };

// Source: pthread_mutex_lock(3) of glibc: struct __pthread_mutex_s, lowlevellock.h.
static uint32_t lock_scan_owner_beside(uintptr_t word)
{
    pthread_mutex_t mutex;
    return gp_peek(word, &mutex, sizeof(mutex)) && mutex.__data.__owner > 0 ? (uint32_t)mutex.__data.__owner : 0;
}
#else
enum { NOT_AN_OWNER = EBUSY }; // in musl's word of a normal lock. Source: musl, src/thread/pthread_mutex_trylock.c

static uint32_t lock_scan_owner_beside(uintptr_t word)
{
    (void)word;
    return 0;
}
#endif

static uint32_t lock_scan_owner_in(uintptr_t word)
{
    uint32_t value;
    return gp_peek(word, &value, sizeof(value)) ? value & FUTEX_TID_MASK : 0;
}

// A condition variable, a semaphore, a barrier or a join waits for other values, or has no owner beside its word.
static bool lock_scan_read(const uintptr_t arguments[3], lock_t *lock)
{
    int command = (int)arguments[1] & FUTEX_CMD_MASK;
    uint32_t value = (uint32_t)arguments[2];
    *lock = (lock_t){.address = arguments[0], .is_timed = command == FUTEX_WAIT_BITSET};
    if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
        lock->owner = lock_scan_owner_in(lock->address);
    else if ((command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && value & FUTEX_WAITERS && value & FUTEX_TID_MASK)
        lock->owner = (value & FUTEX_TID_MASK) != NOT_AN_OWNER ? value & FUTEX_TID_MASK : 0; // a robust one
    else if ((command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && value == IS_WAITED_FOR)
        lock->owner = lock_scan_owner_beside(lock->address);
    return lock->owner != 0;
}

// The owner as an open wait began may have given the lock back since, and another thread has it.
static size_t lock_scan_read_words(const gp_thread_t *thread, uintptr_t words[GP_LOCK_WORDS])
{
    uintptr_t old[GP_LOCK_WORDS];
    uint32_t owner = UINT32_MAX;
    size_t count = gp_lock_wait_words(thread, old, &owner), kept = 0;
    bool is_same = owner == UINT32_MAX;
    for (size_t i = 0; i < count; i++)
        is_same |= owner != 0 && old[i] == gp_lock_word_thread(owner);
    if (!is_same && owner != 0 && count > 0)
        words[kept++] = gp_lock_word_thread(owner);
    for (size_t i = 0; i < count; i++) // the lock is the last
        if (is_same || old[i] == gp_lock_word_timed() || i == count - 1)
            words[kept++] = old[i];
    return kept;
}

size_t gp_lock_scan_put(const gp_thread_t *thread, const uintptr_t arguments[3], uintptr_t *frames, size_t depth,
                        size_t max, unsigned *flags)
{
    uintptr_t words[GP_LOCK_WORDS];
    lock_t lock;
    size_t count = lock_scan_read_words(thread, words);
    if (count == 0 && !gp_gil_is_waited_for(thread) && lock_scan_read(arguments, &lock)) {
        const gp_thread_t *holder = gp_thread_find((pid_t)lock.owner);
        if (holder == NULL) // a word beside that is no owner's
            return depth;
        words[count++] = gp_lock_word_thread(holder->index);
        words[count] = gp_lock_word_timed();
        count += lock.is_timed;
        words[count++] = gp_lock_word_address(lock.address);
    }
    if (count == 0)
        return depth;
    size_t kept = depth + count <= max ? depth : max - count;
    memmove(frames + count, frames, kept * sizeof(frames[0]));
    memcpy(frames, words, count * sizeof(frames[0]));
    *flags |= GP_SAMPLE_LOCK;
    return kept + count;
}
