// SPDX-License-Identifier: MIT
// The names that dumps share: one symbolizer a process, which reads ahead.
//
// Model: a profile that begins is going to be dumped. So from its beginning on a thread of greenprof's own, which gets
// the processor after the program's (nice), looks for two seconds at where samples are: it reads the tables of these
// modules, and lines and functions of these compilation units, so that the first dump finds them there. Modules without
// samples are not read; without a profile nothing is. Profiles that begin later have it look again, ever less often.
#pragma once

#include <stdbool.h>

#include "symbol/symbolizer.h"

typedef struct gp_dump_names {
    gp_symbolizer_t *symbolizer;
    unsigned users;
} gp_dump_names_t;

// Take them, or NULL when memory is short, and give them back: what has grown too large is then replaced by new ones.
gp_dump_names_t *gp_dump_names_take(void);
void gp_dump_names_give_back(gp_dump_names_t *names);

// How many dumps may go on at once. The calling thread waits for its turn, a second at most: a dump to a file that
// takes nothing does not hold up all others. Takes only locks of dumps.
typedef struct gp_dump_turn {
    bool has_place; // of the places for dumps
    bool waited;    // others did: the processor is the program's first
} gp_dump_turn_t;
gp_dump_turn_t gp_dump_turn_take(void);
void gp_dump_turn_give_back(gp_dump_turn_t turn);

// The calling thread, one of greenprof's own, gets the processor after the program's threads from now on.
void gp_dump_give_way(void);
