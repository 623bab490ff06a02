// SPDX-License-Identifier: MIT
#include "ship/send/resource.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OWN_PAIRS = 5 };

bool gp_fleet_label_is_known(const char *key)
{
    static const char *const keys[] = {"service", "service.name", "version", "service.version", "tenant"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

// Labels that OTEL_RESOURCE_ATTRIBUTES has given may say the same.
static bool resource_is_own(const char *const *pairs, const char *key)
{
    for (size_t i = 0; i < OWN_PAIRS; i++)
        if (strcmp(pairs[2 * i], key) == 0)
            return true;
    return gp_fleet_label_is_known(key);
}

int gp_fleet_resource_make(gp_fleet_resource_t *resource, const gp_row_process_t *process)
{
    const char **pairs = calloc(2 * (process->label_count + OWN_PAIRS) + 1, sizeof(*pairs));
    size_t at = 2 * OWN_PAIRS;
    resource->pairs = pairs;
    if (pairs == NULL)
        return -ENOMEM;
    snprintf(resource->pid, sizeof(resource->pid), "%" PRIu32, process->pid);
    const char *const own[2 * OWN_PAIRS] = {
        "service.version", process->version, "service.namespace", process->tenant,   "host.name",
        process->host,     "process.pid",    resource->pid,       "process.command", process->command,
    };
    memcpy(pairs, own, sizeof(own));
    for (size_t i = 0; i < process->label_count; i++) {
        if (resource_is_own(own, process->labels[i].key))
            continue;
        pairs[at++] = process->labels[i].key;
        pairs[at++] = process->labels[i].value;
    }
    return 0;
}

void gp_fleet_resource_free(gp_fleet_resource_t *resource)
{
    free(resource->pairs);
    resource->pairs = NULL;
}
