// SPDX-License-Identifier: MIT
#include "sort_key.h"

#include <stddef.h>
#include <string.h>

const gp_sort_key_t gp_sort_keys[] = {
    {"calls", GP_SORT_CALLS, "call count"},
    {"ncalls", GP_SORT_CALLS, "call count"},
    {"cumtime", GP_SORT_CUMULATIVE, "cumulative time"},
    {"cumulative", GP_SORT_CUMULATIVE, "cumulative time"},
    {"filename", GP_SORT_FILE, "file name"},
    {"line", GP_SORT_LINE, "line number"},
    {"module", GP_SORT_FILE, "file name"},
    {"name", GP_SORT_NAME, "function name"},
    {"nfl", GP_SORT_NAME_FILE_LINE, "name/file/line"},
    {"pcalls", GP_SORT_PRIMITIVE_CALLS, "primitive call count"},
    {"stdname", GP_SORT_STANDARD_NAME, "standard name"},
    {"time", GP_SORT_TIME, "internal time"},
    {"tottime", GP_SORT_TIME, "internal time"},
    {NULL, GP_SORT_NONE, NULL},
};

// The numbers that pstats took before it had names.
static const gp_sort_key_t numbered[] = {
    {"-1", GP_SORT_STANDARD_NAME, "standard name"},
    {"0", GP_SORT_CALLS, "call count"},
    {"1", GP_SORT_TIME, "internal time"},
    {"2", GP_SORT_CUMULATIVE, "cumulative time"},
};

const gp_sort_key_t gp_group_sort_keys[] = {
    {"wall", GP_SORT_WALL, "wall time"},
    {"cpu", GP_SORT_CPU, "CPU time"},
    {"blocked", GP_SORT_BLOCKED, "time blocked"},
    {"preempted", GP_SORT_PREEMPTED, "time preempted"},
    {"ready", GP_SORT_READY, "time ready"},
    {"parked", GP_SORT_PARKED, "time parked"},
    {"waiting", GP_SORT_WAITING, "time ready or parked"},
    {"gil", GP_SORT_GIL, "time waiting for the interpreter's lock"},
    {"queued", GP_SORT_QUEUED, "time in queues of pools"},
    {"longest", GP_SORT_LONGEST, "longest time on the thread"},
    {"switches", GP_SORT_SWITCHES, "switches"},
    {NULL, GP_SORT_NONE, NULL},
};

// NULL as well where a beginning is that of several keys.
static const gp_sort_key_t *sort_key_find(const gp_sort_key_t *keys, const char *text)
{
    const gp_sort_key_t *found = NULL;
    size_t len = strlen(text);
    for (const gp_sort_key_t *key = keys; key->name != NULL; key++) {
        if (strcmp(key->name, text) == 0)
            return key;
        if (len == 0 || strncmp(key->name, text, len) != 0)
            continue;
        if (found != NULL && found->sort != key->sort)
            return NULL;
        found = key;
    }
    return found;
}

const gp_sort_key_t *gp_sort_key_find(const char *text)
{
    for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++)
        if (strcmp(numbered[i].name, text) == 0)
            return &numbered[i];
    return sort_key_find(gp_sort_keys, text);
}

const gp_sort_key_t *gp_group_sort_key_find(const char *text)
{
    const gp_sort_key_t *found = sort_key_find(gp_group_sort_keys, text);
    return found != NULL ? found : gp_sort_key_find(text);
}
