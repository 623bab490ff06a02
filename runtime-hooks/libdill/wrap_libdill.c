// SPDX-License-Identifier: MIT
// libdill: go() is a macro that calls dill_prologue() and then moves the stack pointer by itself; the switch is inline
// assembly. Stacks are announced and named by the place of go(); the stack pointer decides which one runs.
// Source: libdill 2.14, libdill.h (dill_go_), cr.c (dill_prologue), stack.c.
#include "wrap/wrap.h"

#include <stdio.h>
#include <string.h>

enum { STACK_BYTES = 256 * 1024 };

extern int __real_dill_prologue(void **context, void **top, size_t bytes, int bundle, const char *file, int line);
int __wrap_dill_prologue(void **context, void **top, size_t bytes, int bundle, const char *file, int line);

int __wrap_dill_prologue(void **context, void **top, size_t bytes, int bundle, const char *file, int line)
{
    char *given = *top; // go_mem(): a stack of the program's own
    int handle = __real_dill_prologue(context, top, bytes, bundle, file, line);
    if (handle < 0)
        return handle;
    const char *slash = strrchr(file, '/');
    char name[48];
    snprintf(name, sizeof(name), "%s:%d", slash != NULL ? slash + 1 : file, line);
    size_t size = given != NULL ? bytes : STACK_BYTES;
    // The top is rounded, and what is above it is libdill's own.
    gp_wrap_announce_unseen(given != NULL ? given : (char *)*top - size + 4096, given != NULL ? size : size - 4096,
                            NULL, name);
    return handle;
}
