// SPDX-License-Identifier: MIT
// The loop of runtimes that have none: their coroutines run in turns, in the shape of each (runtimes/shape.h).
#include "../runtimes/shape.h"
#include "guarded.h"
#include "runtime.h"

enum { STACK_MIN = 8192 };

static bool is_over[SHAPE_MAX];
static int current;
static void (*run_body)(int);

size_t runtime_stack_min(void)
{
    return STACK_MIN;
}

void runtime_yield(void)
{
    shape_leave(current);
}

static void turns_body(void)
{
    run_body(current);
    is_over[current] = true;
}

bool runtime_run(int count, size_t stack_bytes, void (*body)(int))
{
    run_body = body;
    for (int id = 0; id < count; id++) {
        char *low = guarded_stack(stack_bytes);
        if (low == NULL)
            return false;
        shape_make_on(id, low, stack_bytes, turns_body);
    }
    for (int left = count; left > 0;) {
        left = 0;
        for (int id = 0; id < count; id++) {
            if (is_over[id])
                continue;
            current = id;
            shape_enter(id);
            left += !is_over[id];
        }
    }
    return true;
}
