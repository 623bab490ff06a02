// SPDX-License-Identifier: MIT
// Whether the CPython in this process is one that greenprof can read.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// By what it publishes, and by a trial where one is due. Caller holds its lock; in the main interpreter.
bool gp_cpython_is_known(void);

// Says why the CPython that is loaded is not known, in a sentence such as "CPython 3.14.1 is built without the global
// interpreter lock: native frames only".
// Returns what snprintf() does; 0 = it is known, or there is none. Signals: not safe.
int gp_cpython_refusal(char *text, size_t size);
