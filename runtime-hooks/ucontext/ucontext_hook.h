// SPDX-License-Identifier: MIT
// Between the ucontext hook's parts.
#pragma once

#include <stdint.h>
#include <ucontext.h>

#include "signal/coro_record.h"

// Address to which glibc lets an entry function return; 0 = not yet seen.
extern uintptr_t gp_ucontext_start_context __attribute__((visibility("hidden")));

// Where entry functions return to instead: tells gp_ucontext_ended(), then goes on at gp_ucontext_start_context.
extern char gp_ucontext_return[] __attribute__((visibility("hidden")));

// Right before a switch to `target`, while profiles run.
void gp_ucontext_switch(const ucontext_t *target, const gp_park_t *park);

// The same for setcontext().
void gp_ucontext_leave(const ucontext_t *target, const gp_park_t *park);

// Calls of the stubs of swapcontext and setcontext (interpose/interpose.h).
void gp_ucontext_swap(const uintptr_t *arguments, const gp_park_t *park);
void gp_ucontext_set(const uintptr_t *arguments, const gp_park_t *park);

// A coroutine's entry function has returned; glibc goes on with `link` (NULL: the thread ends).
void gp_ucontext_ended(const ucontext_t *link);
