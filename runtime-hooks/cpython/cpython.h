// SPDX-License-Identifier: MIT
// Whether the CPython in this process is one that greenprof can read.
#pragma once

#include <stdbool.h>

// Is the interpreter known, by its published offsets, and by a trial where one is due? An unknown one is told
// (not_known.h). Caller holds the lock of the main interpreter. Signals: not safe.
bool gp_cpython_is_known(void);
