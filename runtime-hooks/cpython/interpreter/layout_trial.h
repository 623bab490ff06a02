// SPDX-License-Identifier: MIT
// The layout tried out on existing frames: a function of Python's calls back, and the walker's frames are compared with
// the known ones of the function. So wrong offsets are found before anything is made of them, and states of generators,
// which are not published, are learnt.
#pragma once

#include <stdbool.h>

// Once a process, as soon as Python code can run; from 3.13 on. Caller holds the lock of the main interpreter.
// Returns false where the layout does not hold. Cost: some 100 us.
bool gp_cpython_layout_holds(void);
