// SPDX-License-Identifier: MIT
// Deadlines of waiting coroutines: a binary heap, the earliest first.
//
// Model: a coroutine has at most one deadline, and its record (coroutine_wait_t.timer_index) knows
// where it lies in the heap, so a deadline can be taken away in O(log n).
#pragma once

#include "coroutine.h"

typedef struct timers {
    coroutine_t **heap; // coroutine_t *[capacity], the first `count` in heap order
    size_t count;
    size_t capacity;
} timers_t;

// Add a coroutine by its wait.deadline_ms. Returns 0 or -ENOMEM.
int timers_add(timers_t *timers, coroutine_t *co);

// Take a coroutine out again.
void timers_remove(timers_t *timers, coroutine_t *co);

// The coroutine with the earliest deadline; NULL when there is none.
coroutine_t *timers_first(const timers_t *timers);

void timers_free(timers_t *timers);
