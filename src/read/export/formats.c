// SPDX-License-Identifier: MIT
#include "export/formats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "export/formats_lookup.h" // generated from formats.gperf

enum { FORMAT_SLOTS = sizeof(format_words) / sizeof(format_words[0]) };

static gp_exporter_t table[FORMAT_SLOTS + 1];

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const gp_exporter_t *)left)->name, ((const gp_exporter_t *)right)->name);
}

// gperf's array has holes and gperf's order; the table that callers walk is by name.
static void fill_table(void)
{
    size_t count = 0;
    for (size_t i = 0; i < FORMAT_SLOTS; i++)
        if (format_words[i].name != NULL && format_words[i].name[0] != '\0')
            table[count++] = format_words[i];
    qsort(table, count, sizeof(*table), compare_names);
}

const gp_exporter_t *gp_exporter_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
    return table;
}

const gp_exporter_t *gp_exporter_find(const char *name)
{
    return gp_format_lookup(name, strlen(name));
}
