// SPDX-License-Identifier: MIT
// Labels of a process, by which its rows can be asked for.
//
// Model: sources from the weakest to the strongest, each replacing labels of the former: the shipper's environment and
// its pod (downward API files), the process' cgroup (container, pod, unit), the process' environment (kept in its
// capture). Each environment gives OTEL_RESOURCE_ATTRIBUTES (k=v,k=v, %XX), OTEL_SERVICE_NAME, GREENPROF_LABELS.
// service and version: service.name, service.version of OpenTelemetry, or a label of that name; tenant: a label.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include <stddef.h>

#include "base/memory.h"
#include "ship/rows/row.h"

typedef struct gp_labels { // zero-initialized = none
    gp_row_pair_t *items;  // by key
    size_t count, capacity;
    gp_arena_t arena;
} gp_labels_t;

enum { GP_LABELS_MAX = 64 };

// Set a label. Without effect when the key is empty, or there are GP_LABELS_MAX. Returns 0 or -ENOMEM.
int gp_labels_set(gp_labels_t *labels, const char *key, size_t key_len, const char *value, size_t value_len);

// "k=v,k=v": %XX is decoded, spaces around are left out.
int gp_labels_add_list(gp_labels_t *labels, const char *list);

// Lines of /proc/PID/cgroup: cgroup, unit, container, pod.
int gp_labels_add_cgroup(gp_labels_t *labels, const char *text);

// Add labels of this process: its environment, the files of a pod's downward API (/etc/podinfo/labels, namespace,
// name).
//   folder: "/etc/podinfo"; $GREENPROF_PODINFO may name another one.
int gp_labels_add_own(gp_labels_t *labels);

// The value of a label; NULL.
const char *gp_labels_get(const gp_labels_t *labels, const char *key);

int gp_labels_copy(gp_labels_t *to, const gp_labels_t *from);
void gp_labels_free(gp_labels_t *labels);
