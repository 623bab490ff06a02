// SPDX-License-Identifier: MIT
// Where a capture is written that is asked for from another root directory: outside of a container, the process'.
//
// Model: the asker sends the directory along, as a descriptor, and the process writes by way of that; what it answers
// has the asker's name for it. Needs /proc. Control's thread only.
#pragma once

#include "model/control.h"

// The path by which the process itself comes to the asker's.
//   fd:   of the directory of `path`; it belongs to the place from then on.
//   path: as the asker has it.
// Returns 0 or -ENAMETOOLONG. gp_control_place_keep() or gp_control_place_drop() comes next.
int gp_control_place_begin(int fd, const char *path, char own[GP_CONTROL_PATH_SIZE]);

// A capture is written there: any earlier one is whole. Or it is not.
void gp_control_place_keep(void);
void gp_control_place_drop(void);

// The capture is whole: the directory is not needed any more.
void gp_control_place_end(void);

// Make of a path of the process' own what the asker calls it; any other stays.
void gp_control_place_show(char path[GP_CONTROL_PATH_SIZE]);
