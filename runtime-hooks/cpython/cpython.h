// SPDX-License-Identifier: MIT
// CPython in this process: found by its symbols, 3.11 to 3.13.
//
// Where it is there when the core is loaded (`greenprof run python3`), all is in place before the first line runs. Else
// the walker is registered when it is found, and greenlets are hooked when the package greenprof is imported.
#ifndef GP_CPYTHON_CPYTHON_H
#define GP_CPYTHON_CPYTHON_H

#include <stdbool.h>

// Look for it, and register its walker where it is there. Idempotent. Threads: any, one at a time. Signals: not safe.
// Returns whether it is there.
bool gp_cpython_look(void);

#endif
