// SPDX-License-Identifier: MIT
// The process' own life: load, fork, exec, exit.
#pragma once

// Prepare what must be in place before the first thread, fork or exec. Idempotent.
void gp_process_init(void);

// Around an exec that does not come through the interposed functions: no signal may arrive in the new image.
void gp_process_before_exec(void);
void gp_process_after_failed_exec(void);

// exit() is under way: let the capture be completed.
void gp_process_ending(void);

// Leave the process (coro/process_id.h): what there is to tell is told, and nothing of greenprof's goes on.
void gp_process_give_up(void);

// Call `call` before that, once for each of its calls, and `last` when the capture has ended.
void gp_process_at_end(void (*call)(void), void (*last)(void));
