// SPDX-License-Identifier: MIT
// The step of long work in progress, on standard error where that is a terminal.
//
// Model: a thread of its own draws, first after half a second; work that is shorter shows nothing. The position of a
// file's descriptor says how far reading has come, so readers need not know. The line is gone when the work has ended,
// or a message is written.
//
// Order of calls: begin -> begin (the next step)... -> end. Threads: one at a time begins and ends.
#pragma once

// Begin a step.
//   what, path: "reading", "service.greenprof".
//   fd:   its position is the progress; -1 = unknown.
void gp_progress_begin(const char *what, const char *path, int fd);

// The work has ended. Does nothing when none has begun.
void gp_progress_end(void);

// Take the line away, for a message; it comes back.
void gp_progress_clear(void);
