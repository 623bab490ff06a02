// SPDX-License-Identifier: MIT
// The sort keys of pstats and their abbreviations.
// Source: Lib/pstats.py of CPython 3.11, Stats.sort_arg_dict_default.
#pragma once

typedef enum gp_sort {
    GP_SORT_NONE,
    GP_SORT_CALLS,
    GP_SORT_CUMULATIVE,
    GP_SORT_FILE,
    GP_SORT_LINE,
    GP_SORT_NAME,
    GP_SORT_NAME_FILE_LINE,
    GP_SORT_PRIMITIVE_CALLS,
    GP_SORT_STANDARD_NAME,
    GP_SORT_TIME,
    // Columns of the tables of coroutines and traces only.
    GP_SORT_WALL,
    GP_SORT_CPU,
    GP_SORT_BLOCKED,
    GP_SORT_PREEMPTED,
    GP_SORT_READY,
    GP_SORT_PARKED,
    GP_SORT_WAITING,
    GP_SORT_GIL,
    GP_SORT_QUEUED,
    GP_SORT_LONGEST,
    GP_SORT_SWITCHES,
} gp_sort_t;

typedef struct gp_sort_key {
    const char *name;
    gp_sort_t sort;
    const char *what; // as pstats says it behind "Ordered by:"
} gp_sort_key_t;

// Find a key by its name, or by a beginning of it that can mean only one thing. NULL when there is none.
const gp_sort_key_t *gp_sort_key_find(const char *text);

// The same for tables of coroutines and traces: a column of theirs, else a key of pstats.
const gp_sort_key_t *gp_group_sort_key_find(const char *text);

// Ended by an entry without a name. The second table has the columns alone.
extern const gp_sort_key_t gp_sort_keys[], gp_group_sort_keys[];
