// SPDX-License-Identifier: MIT
#include "turns.h"

#include "guarded.h"

enum { STACK_MIN = 8192 };

static bool is_over[TURNS_MAX];
static int current;
static void (*run_body)(int);

size_t runtime_stack_min(void)
{
    return STACK_MIN;
}

int turns_current(void)
{
    return current;
}

void turns_body(void)
{
    run_body(current);
    is_over[current] = true;
}

static bool make(int id, size_t stack_bytes)
{
    char *low = guarded_stack(stack_bytes);
    return low != NULL && turns_make(id, low, stack_bytes);
}

bool runtime_run(int count, size_t stack_bytes, void (*body)(int))
{
    run_body = body;
    for (int id = 0; id < count; id++)
        if (!make(id, stack_bytes))
            return false;
    for (int left = count; left > 0;) {
        left = 0;
        for (int id = 0; id < count; id++) {
            if (is_over[id])
                continue;
            current = id;
            turns_resume(id);
            left += !is_over[id];
        }
    }
    return true;
}
