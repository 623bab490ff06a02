// SPDX-License-Identifier: MIT
// The functions by which the program becomes or begins another.
#pragma once

// Look glibc's own up: later the loader's lock may be held by others, or the caller be in a handler.
void gp_exec_resolve(void);
