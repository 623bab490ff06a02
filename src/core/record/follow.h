// SPDX-License-Identifier: MIT
// Which processes of a `greenprof run` are profiled: the library is loaded into all of them, by LD_PRELOAD.
//
// GREENPROF_FOLLOW:
//   programs  all, but for shells and launchers that the program passes through (the default)
//   all       all
//   exec      the program's own process, whatever it becomes by exec; none of its children
//   none      the program itself until it becomes another by exec
// GREENPROF_FOLLOW_NAME: moreover, only those with an executable name by this pattern (fnmatch(3)).
#pragma once

#include <stdbool.h>

// Is this image, which has just been loaded, to be profiled? To be called once an image.
bool gp_follow_image(void);

// Are the children that it forks?
bool gp_follow_forks(void);
