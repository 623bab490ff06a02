// SPDX-License-Identifier: MIT
// Python's own calls of pthread_create, exec, sigaction and its kin, where libgreenprof came too late to be in between:
// its interposed functions serve only what is linked after them, not an interpreter that imports the package greenprof.
#pragma once

// Wrap os.execv, os.execve and _thread.start_new_thread; lead the interpreter's sigaction() and sigwait() to the
// core's. Nothing is done where the core was preloaded. Caller holds the interpreter lock. Idempotent.
void gp_calls_watch(void);
