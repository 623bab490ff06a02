// SPDX-License-Identifier: MIT
#include "greenlet/walk_parked.h"

#include "interpreter/awaits.h"
#include "interpreter/frame_walk.h"
#include "interpreter/peek_text.h"

enum {
    NATIVE_WORDS = 48, // of a greenlet's C++ object, those in which the frame may be
    THREADS_MAX = 65536,
};

static uintptr_t walk_parked_word_at(uintptr_t address)
{
    uintptr_t word;
    return address >= 4096 && gp_peek(address, &word, sizeof(word)) ? word : 0;
}

size_t gp_cpython_walk_parked(uintptr_t object, uintptr_t *frames, size_t max, unsigned *flags)
{
    (void)flags;
    if (object & GP_CPYTHON_IS_TASK)
        return gp_cpython_walk_awaits(gp_peek, object & ~(uintptr_t)GP_CPYTHON_IS_TASK, frames, max);
    uintptr_t frame = gp_cpython_frame_object(gp_peek, object);
    size_t depth = frame != 0 ? gp_cpython_walk_greenlet(gp_peek, object, 0, frames, max) : 0;
    return gp_cpython_frame_object(gp_peek, object) == frame ? depth : 0;
}

// The state of a thread, found by its number in the list that any thread's state is part of.
static uintptr_t walk_parked_find_state(pid_t tid)
{
    static const size_t links[] = {0, GP_CPYTHON_STATE_NEXT};
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        uintptr_t state = atomic_load_explicit(&gp_cpython_runtime.any_state, memory_order_relaxed);
        for (int n = 0; n < THREADS_MAX && state != 0; n++) {
            if (walk_parked_word_at(state + gp_cpython_runtime.layout->state_native_id) == (uintptr_t)tid)
                return state;
            state = walk_parked_word_at(state + links[i]);
        }
    }
    return 0;
}

size_t gp_cpython_walk_asleep(const gp_thread_t *thread, uintptr_t *frames, size_t max, unsigned *flags)
{
    uintptr_t state = atomic_load_explicit(&thread->language.state, memory_order_relaxed);
    uintptr_t base = atomic_load_explicit(&thread->language.base, memory_order_relaxed);
    (void)flags;
    if (state == 0 && (state = walk_parked_find_state(atomic_load_explicit(&thread->tid, memory_order_relaxed))) == 0)
        return 0;
    return gp_cpython_walk_frames(gp_peek, gp_cpython_leaf_of(gp_peek, state), base, frames, max);
}

void gp_cpython_parked_learn(gp_py_t *greenlet)
{
    gp_py_t *error[3];
    gp_py.error_fetch(&error[0], &error[1], &error[2]); // of whatever goes on where this is called
    gp_py_t *frame = gp_py.get_attr(greenlet, "gr_frame");
    uintptr_t words[NATIVE_WORDS],
        implementation = walk_parked_word_at((uintptr_t)greenlet + GP_CPYTHON_GREENLET_NATIVE);
    size_t count = 0;
    if (frame == NULL)
        gp_py.error_clear();
    while (frame != NULL && frame != gp_py.none && count < NATIVE_WORDS &&
           gp_peek(implementation + count * sizeof(words[0]), &words[count], sizeof(words[0])))
        count++;
    for (size_t i = 1; i < count; i++) {
        if (words[i] == (uintptr_t)frame) {
            atomic_store_explicit(&gp_cpython_frame_object_at, i * sizeof(words[0]), memory_order_relaxed);
            break;
        }
    }
    gp_py.drop(frame);
    gp_py.error_restore(error[0], error[1], error[2]);
}
