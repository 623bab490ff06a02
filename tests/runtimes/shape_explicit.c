// SPDX-License-Identifier: MIT
// Schedulers that tell of their coroutines by <greenprof/coro.h>. One of these is defined:
//   SHAPE_NAMELESS       a stack each; the switch routine has no symbol that anything could stand before
//   SHAPE_SHARED_LIBACO  one stack for all, copied out by the loop after each turn (aco_yield to the main coroutine)
//   SHAPE_SHARED_LIBCO   the same, copied when another wants it (Tencent's occupy_co; coost's)
#include <stdlib.h>
#include <string.h>

#include <greenprof/coro.h>

#include "shape.h"

enum { COUNT = 4, BYTES = 65536 };

static prof_coro_t *announced[COUNT];
static void *loop, *all[COUNT];

static const char *const names[COUNT] = {"entry_alpha", "entry_beta", "entry_gamma", "entry_idle"};

#if defined(SHAPE_NAMELESS)
void shape_make(int id, void (*run)(void))
{
    char *memory = calloc(1, BYTES);
    announced[id] = prof_coro_create(memory, BYTES, names[id]);
    all[id] = shape_stack(memory, BYTES, run);
}

void shape_enter(int id)
{
    prof_coro_switch(announced[id]);
    shape_swap(&loop, all[id]);
}
#else
static char *stack;
static int owner = -1; // its frames are on the stack
static struct {
    char *bytes;
    size_t len;
} saved[COUNT];

static void keep(int id)
{
    size_t len = (size_t)(stack + BYTES - (char *)all[id]);
    if (len > saved[id].len)
        saved[id].bytes = realloc(saved[id].bytes, len);
    saved[id].len = len;
    memcpy(saved[id].bytes, all[id], len);
    memset(stack, 0xa5, BYTES); // a reader finds nothing there
}

void shape_make(int id, void (*run)(void))
{
    if (stack == NULL)
        stack = calloc(1, BYTES);
    announced[id] = prof_coro_create_shared(stack, BYTES, names[id]);
    if (owner >= 0)
        keep(owner);
    all[id] = shape_stack(stack, BYTES, run);
    owner = id;
}

void shape_enter(int id)
{
    if (owner != id) {
        if (owner >= 0)
            keep(owner);
        memcpy(all[id], saved[id].bytes, saved[id].len);
        owner = id;
    }
    prof_coro_switch(announced[id]);
    shape_swap(&loop, all[id]);
#if defined(SHAPE_SHARED_LIBACO)
    keep(id);
    owner = -1;
#endif
}
#endif

void shape_leave(int id)
{
    prof_coro_switch(NULL);
    shape_swap(&all[id], loop);
}
