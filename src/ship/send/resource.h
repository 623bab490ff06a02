// SPDX-License-Identifier: MIT
// The facts of a process, as attributes of OpenTelemetry's resources.
#pragma once

#include "ship/rows/row.h"

typedef struct gp_fleet_resource {
    const char **pairs; // key, value, key, ..., NULL; without the service's name
    char pid[24];
} gp_fleet_resource_t;

// Whether a label is what a process' service, version or tenant was taken from.
bool gp_fleet_label_is_known(const char *key);

// Returns 0 or -ENOMEM. The texts are the process's.
int gp_fleet_resource_make(gp_fleet_resource_t *resource, const gp_row_process_t *process);
void gp_fleet_resource_free(gp_fleet_resource_t *resource);
