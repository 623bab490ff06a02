// SPDX-License-Identifier: MIT
// A runtime for the driver (driver.c). Each runtime has a file.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Smallest stack that the runtime can give a coroutine, bytes.
size_t runtime_stack_min(void);

// Run body(0) ... body(count - 1), each as a coroutine of its own on a stack of `stack_bytes` with a guard below it.
// None begins before all are made. Returns when all are over; false where one could not be made.
bool runtime_run(int count, size_t stack_bytes, void (*body)(int id));

// Let the others run; called by a body.
void runtime_yield(void);
