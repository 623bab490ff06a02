// SPDX-License-Identifier: MIT
// A recording in parts: a capture with the size or the age of GREENPROF_ROTATE is put aside, and another one takes its
// place. A service records for as long as it runs, on a bounded part of the disk.
//
// Model: the capture at FILE is always the latest part. A part put aside is called NAME-0001.greenprof for
// NAME.greenprof, numbers rising over restarts of the service; the latest GREENPROF_KEEP of these are kept. Each part
// is a capture of its own: the parts' times and counters add up to those of one file. Collector only, under the drain
// lock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/write/writer.h"

enum { GP_ROTATION_PATH_SIZE = 4096 };

// The default for GREENPROF_ROTATE, from the next capture on.
void gp_rotation_suggest(uint64_t bytes, unsigned keep_count);

// The first part, or the next one, begins.
void gp_rotation_begin(uint64_t now_ns);

// Is it time for the next part? bytes: that the present one has, about.
bool gp_rotation_is_due(uint64_t bytes, uint64_t now_ns);

// Name the writer's present part, and remove surplus parts beside it: those put aside by this process, and those marked
// as put aside (capture/write/writer_file.h). Returns false where no name is left.
bool gp_rotation_make_room(const gp_writer_t *writer, char aside[GP_ROTATION_PATH_SIZE]);

// How many parts were put aside by this process.
unsigned gp_rotation_count(void);

// In a forked child: it has none.
void gp_rotation_in_child(void);
