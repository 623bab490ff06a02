// SPDX-License-Identifier: MIT
// Several captures into one.
#ifndef GP_TOOLS_MERGE_H
#define GP_TOOLS_MERGE_H

#include <stddef.h>

// Merge captures into a capture file. Coroutines and threads get numbers of their own, whichever
// capture they come from; traces of one id are one trace, modules of one build-id (of one path,
// where they have none) one module, equal stacks one stack. Times are on the clock of the machine.
//   path:   is created or replaced; half of it is left behind on failure.
//   name:   what messages call it.
//   inputs: const char *[count], files that can be read twice.
// Returns 0 or an exit status, with a message; damage in an input is a warning only.
int gp_merge(const char *path, const char *name, char *const *inputs, size_t count);

#endif
