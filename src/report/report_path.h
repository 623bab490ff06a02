// SPDX-License-Identifier: MIT
// Rows of critical paths. Private to src/report/report_*.c.
#pragma once

struct gp_pass;

// Add a row for each (endpoint, coroutine, stack, state, what kept the thread) on the critical paths that the pass'
// options choose: weights add up to the latencies. Frames: the endpoint where there are several requests, the coroutine
// (then without its number), the stack, the state. Returns 0 or a negative errno value.
int gp_report_add_paths(struct gp_pass *pass);
