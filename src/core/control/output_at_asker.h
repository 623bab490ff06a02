// SPDX-License-Identifier: MIT
// Where a capture is written that is asked for from another root directory: outside of a container, the process'.
//
// Model: the asker sends the file along, as a descriptor by which nothing can be done but write there, and the process
// writes by that; the file's name is the asker's alone. Control's thread only.
#pragma once

#include "live/control_protocol.h"

// A name for a file that leads nowhere else, for the process itself.
void gp_control_place_name(int fd, char own[GP_CONTROL_PATH_SIZE]);

// A capture is written there.
//   path: the asker's name for it.
void gp_control_place_keep(const char *own, const char *path);

// Make of the name of the process' own what the asker calls it; any other path stays.
void gp_control_place_show(char path[GP_CONTROL_PATH_SIZE]);
