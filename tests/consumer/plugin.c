// SPDX-License-Identifier: MIT
// A foreign consumer: writes the names of the spans into the file of its URL, each with the niceness of the calling
// thread; and the latter at its end.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "greenprof/consumer.h"

static FILE *names;

static int open_plugin(const char *url, void **state)
{
    const char *path = strstr(url, "?to=");
    if (path == NULL)
        return -EINVAL;
    *state = names = fopen(path + strlen("?to="), "a");
    return names != NULL ? 0 : -errno;
}

static int send_plugin(void *state, const prof_span_record_t *spans, size_t count)
{
    const char *at = (const char *)spans;
    for (size_t i = 0; i < count; i++, at += spans->size)
        fprintf(state, "%d %s\n", getpriority(PRIO_PROCESS, 0), ((const prof_span_record_t *)(const void *)at)->name);
    return fflush(state) == 0 ? (int)count : -errno;
}

static void close_plugin(void *state)
{
    fprintf(state, "%d the end\n", getpriority(PRIO_PROCESS, 0));
    fclose(state);
}

static const prof_consumer_t plugin = {
    .size = sizeof(plugin),
    .version = PROF_CONSUMER_VERSION,
    .scheme = "names",
    .open = open_plugin,
    .send = send_plugin,
    .close = close_plugin,
};

__attribute__((visibility("default"))) const prof_consumer_t *prof_consumer_plugin(void);
const prof_consumer_t *prof_consumer_plugin(void)
{
    return &plugin;
}
