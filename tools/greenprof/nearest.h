// SPDX-License-Identifier: MIT
// "Did you mean ...?", for words that are not known.
#pragma once

#include <stddef.h>

typedef struct gp_nearest { // the best so far; begin with {word}
    const char *word;
    const char *of;   // what it is a word of, see below; NULL = only its spelling counts
    const char *name; // NULL = none is near
    size_t distance;
} gp_nearest_t;

// Look whether a name is nearer than the ones before: at most a third of its letters changed, left out, added or
// exchanged with their neighbour, the first one unchanged; or the name here for other tools' word.
void gp_nearest_try(gp_nearest_t *nearest, const char *name);

// The meaning of another profiler's word: a name, or a whole command.
//   of: "" = a command, "format", "*" = an option of any command, or the command of the option; with a dash: a whole
//   word
//       that getopt would take for letters, or for the beginning of another one.
// Returns NULL where it is not known.
const char *gp_nearest_meaning(const char *of, const char *word);
