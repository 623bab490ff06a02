// SPDX-License-Identifier: MIT
#include "coro/coro_name.h"

#include <string.h>
#include <time.h>

#include "coro/lock.h"
#include "model/kinds.h"

enum { WORDS = GP_CORO_NAME_SIZE / sizeof(uint64_t), TRIES = 400, QUICK_TRIES = 200, PAUSE_NS = 1000000 };

_Static_assert(sizeof(((gp_coro_label_t *)NULL)->name) == GP_CORO_NAME_SIZE, "a name fits");

// As many bytes as fit, and no half of a character.
static size_t coro_name_fitting(const char *name)
{
    size_t length = name != NULL ? strnlen(name, GP_CORO_NAME_SIZE) : 0;
    if (length < GP_CORO_NAME_SIZE)
        return length;
    for (length = GP_CORO_NAME_SIZE - 1; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;)
        length--;
    return length > 0 ? length : GP_CORO_NAME_SIZE - 1; // no UTF-8 at all
}

void gp_coro_name_set(prof_coro_t *coro, const char *name)
{
    uint64_t words[WORDS] = {0};
    if (name != NULL)
        memcpy(words, name, coro_name_fitting(name));
    gp_coro_label_t *label = gp_coro_label(coro);
    if (words[0] == 0 && !gp_coro_is_named(coro))
        return;
    uint32_t sequence = atomic_load_explicit(&label->name_seq, memory_order_relaxed);
    atomic_store_explicit(&label->name_seq, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); // partner of the fence in gp_coro_name_get()
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&label->name[i], words[i], memory_order_relaxed);
    // Release: partner of the first acquire in gp_coro_name_get().
    atomic_store_explicit(&label->name_seq, sequence + 2, memory_order_release);
}

void gp_coro_name_get(prof_coro_t *coro, char name[GP_CORO_NAME_SIZE])
{
    uint64_t words[WORDS];
    gp_coro_label_t *label = gp_coro_label(coro);
    for (int i = 0; i < TRIES; i++) {
        uint32_t before = atomic_load_explicit(&label->name_seq, memory_order_acquire);
        for (size_t w = 0; w < WORDS; w++)
            words[w] = atomic_load_explicit(&label->name[w], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (!(before & 1) && atomic_load_explicit(&label->name_seq, memory_order_relaxed) == before)
            break;
        if (i >= QUICK_TRIES) // the writer was preempted, on a busy machine for tens of milliseconds
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    // A fatal signal has stopped the writer for good: a part of each name.
    memcpy(name, words, GP_CORO_NAME_SIZE);
    name[GP_CORO_NAME_SIZE - 1] = '\0';
}

bool gp_coro_name_default(prof_coro_t *coro, uint64_t id, const char *name)
{
    gp_lock(&gp_registry_lock);
    uint64_t now = atomic_load_explicit(&coro->id, memory_order_relaxed); // 0: it is over, and not reported yet
    bool is_it = now == id || (now == 0 && atomic_load_explicit(&coro->final_id, memory_order_relaxed) == id);
    bool is_due = is_it && !gp_coro_is_named(coro);
    if (is_due)
        gp_coro_name_set(coro, name);
    gp_unlock(&gp_registry_lock);
    return is_due;
}
