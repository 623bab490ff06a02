// SPDX-License-Identifier: MIT
// Reading CPython's objects from outside: the kernel copies, so that no address can be a fault.
// Threads: any. Signals: not safe. Cost: ~1 us a call.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/peek.h"
#include "interpreter/layout.h"

// A str object as UTF-8, at most `size` - 1 bytes and NUL. Returns its length, -1 where there is no such object.
int gp_cpython_peek_text(const gp_cpython_layout_t *layout, uintptr_t object, char *text, size_t size);
