// SPDX-License-Identifier: MIT
#include "signal/poll.h"

#include <stdatomic.h>
#include <string.h>

enum { STACK_MIN = 2048, STACK_MAX = 1 << 30, ADDRESS_MIN = 4096 };

static gp_poll_t polls[GP_POLLS_MAX];
static _Atomic unsigned poll_count;

static bool poll_is_address(uintptr_t word)
{
    return word >= ADDRESS_MIN && word % sizeof(uintptr_t) == 0 && word >> 47 == 0;
}

static uintptr_t poll_word_at(uintptr_t object, size_t at)
{
    uintptr_t word;
    memcpy(&word, (const void *)(object + at), sizeof(word));
    return word;
}

// The object of the coroutine that runs, 0 = none.
static uintptr_t poll_find_object(const gp_poll_t *poll)
{
    uintptr_t base = poll->is_thread_local ? (uintptr_t)__builtin_thread_pointer() : 0;
    uintptr_t object = poll_word_at(base, (size_t)poll->variable);
    if (poll_is_address(object))
        object = poll_word_at(object, 0);
    return poll_is_address(object) ? object : 0;
}

static bool poll_find_stack(const gp_poll_layout_t *layout, uintptr_t object, gp_poll_answer_t *answer)
{
    answer->lo = poll_word_at(object, layout->low_at);
    for (int i = 0; i < GP_POLL_CHOICES && layout->size_at[i] != 0; i++) {
        uintptr_t size = poll_word_at(object, layout->size_at[i]);
        if (size < STACK_MIN || size > STACK_MAX)
            continue;
        answer->hi = answer->lo + size;
        return answer->lo >= ADDRESS_MIN && answer->hi > answer->lo;
    }
    return false;
}

uint64_t gp_poll_identity(const gp_poll_layout_t *layout, uintptr_t object)
{
    for (int i = 0; i < GP_POLL_CHOICES && layout->id[i].bytes != 0; i++) {
        uint64_t identity = 0;
        memcpy(&identity, (const void *)(object + layout->id[i].at), layout->id[i].bytes == 4 ? 4 : 8);
        if (identity != 0)
            return identity;
    }
    return 0;
}

enum gp_poll_result gp_poll_ask(uintptr_t sp, gp_poll_answer_t *answer)
{
    enum gp_poll_result result = GP_POLL_NOBODY;
    // Acquire: partner of the release in gp_poll_add().
    unsigned count = atomic_load_explicit(&poll_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        gp_poll_t *poll = &polls[i];
        uintptr_t object = poll_find_object(poll);
        if (object == 0)
            continue;
        if (!poll_find_stack(poll->layout, object, answer)) {
            result = GP_POLL_STACKLESS;
            continue;
        }
        answer->poll = poll;
        answer->object = object;
        answer->identity = gp_poll_identity(poll->layout, object);
        if (sp >= answer->lo && sp < answer->hi)
            return GP_POLL_FITS;
        result = GP_POLL_MISFIT;
    }
    answer->poll = NULL;
    return result;
}

bool gp_poll_add(const gp_poll_t *poll)
{
    unsigned count = atomic_load_explicit(&poll_count, memory_order_relaxed);
    if (count == GP_POLLS_MAX)
        return false;
    polls[count] = *poll;
    atomic_store_explicit(&poll_count, count + 1, memory_order_release);
    return true;
}
