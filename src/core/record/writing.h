// SPDX-License-Identifier: MIT
// The thread that writes the capture: the disk, or the reader of a pipe, may take its time, and no other thread waits
// for it.
//
// Model: gp_writer_hand_over(), then gp_writing_begin(). Each process has one capture. Threads: begin and after_fork
// under the producer's lock; wait from anywhere.
#pragma once

#include "capture/write/writer.h"

// Have what was handed over written. The thread is started by the first call; where there can be none, the caller
// writes.
void gp_writing_begin(gp_writer_t *writer);

// Wait until it is written. Returns 0 or -ETIMEDOUT. Signals: safe
int gp_writing_wait(gp_writer_t *writer, uint64_t limit_ns);

// In a forked child: the thread is the parent's.
void gp_writing_after_fork(void);
