// SPDX-License-Identifier: MIT
// A profile at one moment: the core hands it to the half that makes files.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "greenprof/prof.h"
#include "model/call_count.h"
#include "model/ledger.h"
#include "model/location.h"
#include "model/module_info.h"

typedef struct gp_snapshot_node { // a node of the profile's call tree
    gp_loc_t loc;                 // node 0 is the root and has none
    uint32_t parent;              // index of its parent, always smaller than its own
    uint32_t reserved;
    uint64_t weight_ns; // of samples with this node as their leaf (self)
    uint64_t samples;   // number of those
} gp_snapshot_node_t;

typedef struct gp_snapshot { // owned by the caller, freed by release()
    const gp_snapshot_node_t *nodes;
    uint32_t node_count;
    uint32_t module_count;
    const gp_module_info_t *modules; // those that locations are in, by id
    uint64_t total_ns;               // exact CPU time of the scope
    gp_ledger_t ledger;              // where its time went, exactly
    prof_clock_t clock;              // PROF_CLOCK_WALL: nodes of waits end in GP_PSEUDO_PARKED, ...
    uint64_t sampled_ns;             // sum of all nodes' weight_ns
    uint64_t samples;
    uint64_t duration_ns; // wall time while it ran
    uint64_t start_realtime_ns;
    uint32_t frequency_hz;
    uint32_t counter_count;
    const uint64_t *counters;     // enum gp_counter
    const char *const *not_known; // of runtimes: texts, then NULL
    char name[64];
    const gp_function_info_t *functions; // those that nodes refer to, by number
    uint32_t function_count;
    bool exact;                   // PROF_MODE_EXACT
    const gp_call_count_t *calls; // what was counted
    size_t call_count;
} gp_snapshot_t;
