// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/functions.h"
#include "coro/process_id.h"
#include "exact/recorder.h"
#include "not_known.h"
#include "profile/profile.h"
#include "profile/profile_pool.h"
#include "signal/slice.h"

typedef struct owned { // a snapshot and what it points to
    gp_snapshot_t snapshot;
    uint64_t counters[GP_COUNTER_COUNT];
    const char *not_known[GP_NOT_KNOWN_LISTED + 1];
} owned_t;

void gp_profile_snapshot_free(gp_snapshot_t *snapshot)
{
    if (snapshot == NULL)
        return;
    for (uint32_t i = 0; i < snapshot->module_count; i++)
        free((char *)(uintptr_t)snapshot->modules[i].path);
    free((void *)(uintptr_t)snapshot->modules);
    free((void *)(uintptr_t)snapshot->nodes);
    free((void *)(uintptr_t)snapshot->calls);
    free((void *)(uintptr_t)snapshot->functions);
    free(snapshot);
}

// Where in snapshot_modules_met() a location counts.
static size_t snapshot_place_of(gp_loc_t loc, size_t count)
{
    return GP_LOC_MODULE(loc) <= count ? GP_LOC_MODULE(loc) : 0;
}

// By id: is a node or a call of the snapshot in it? The caller frees it. The program itself always counts: readers of
// pprof take the first module for it.
static bool *snapshot_modules_met(const gp_snapshot_t *snapshot, size_t count)
{
    enum { PROGRAM = 1 };
    bool *met = calloc(count + 2, sizeof(*met)); // 0: what is in none
    if (met == NULL)
        return NULL;
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        met[snapshot_place_of(snapshot->nodes[i].loc, count)] = true;
    for (size_t i = 0; i < snapshot->call_count; i++) {
        met[snapshot_place_of(snapshot->calls[i].caller_loc, count)] = true;
        met[snapshot_place_of(snapshot->calls[i].callee_loc, count)] = true;
    }
    met[PROGRAM] = true;
    return met;
}

static int snapshot_copy_module(gp_snapshot_t *snapshot, gp_module_info_t *copy, const gp_module_t *module)
{
    *copy = (gp_module_info_t){
        .id = module->id,
        .build_id_len = module->build_id_len,
        .start = module->start,
        .end = module->end,
        .bias = module->bias,
        .path = strdup(module->path),
    };
    // -Wanalyzer-malloc-leak: the snapshot keeps it.
    memcpy(copy->build_id, module->build_id, sizeof(copy->build_id));
    if (copy->path == NULL)
        return -ENOMEM;
    snapshot->module_count++;
    return 0;
}

// Copy the modules of the snapshot's locations, by id. A process may have very many others.
//   all_used: those that any location was ever in.
static int snapshot_copy_modules(gp_snapshot_t *snapshot, bool all_used)
{
    size_t count, wanted = 0;
    const gp_module_t *all = gp_modules_all(&count);
    bool *met = snapshot_modules_met(snapshot, count);
    for (size_t i = 0; met != NULL && i < count; i++) {
        if (all_used)
            met[i + 1] = all[i].used;
        wanted += met[i + 1];
    }
    gp_module_info_t *copies = met != NULL ? calloc(wanted + 1, sizeof(*copies)) : NULL;
    int error = copies != NULL ? 0 : -ENOMEM;
    snapshot->modules = copies;
    for (size_t i = 0; i < count && error == 0; i++)
        if (met[i + 1])
            error = snapshot_copy_module(snapshot, &copies[snapshot->module_count], &all[i]);
    free(met);
    return error;
}

static int snapshot_copy_nodes(gp_snapshot_t *snapshot, const gp_call_tree_t *tree)
{
    uint32_t count = tree->count > 0 ? tree->count : 1;
    gp_snapshot_node_t *nodes = calloc(count, sizeof(*nodes));
    if (nodes == NULL)
        return -ENOMEM;
    if (tree->count > 0)
        memcpy(nodes, tree->nodes, count * sizeof(*nodes));
    snapshot->nodes = nodes;
    snapshot->node_count = count;
    return 0;
}

// Exact mode: nodes are those of the tree of calls. Where a language reports its calls, native code is not told from
// what the language does: the time of all calls is all there is.
static int snapshot_copy_calls(gp_snapshot_t *snapshot, prof_t *profile)
{
    gp_exact_path_t *paths;
    gp_call_count_t *calls = NULL;
    size_t count;
    int error = gp_exact_collect(profile->exact, &paths, &count);
    gp_snapshot_node_t *nodes = error == 0 ? calloc(count, sizeof(*nodes)) : NULL;
    if (nodes != NULL)
        error = gp_exact_pairs(paths, count, &calls, &snapshot->call_count);
    snapshot->calls = calls;
    snapshot->nodes = nodes;
    uint64_t counted_ns = 0;
    bool has_language = false;
    for (size_t i = 1; nodes != NULL && i < count; i++) {
        const gp_exact_path_t *path = &paths[i];
        uint64_t wait_ns = profile->options.clock == PROF_CLOCK_WALL ? path->own_wait_ns : 0;
        nodes[i] = (gp_snapshot_node_t){
            .loc = path->loc, .parent = path->parent, .weight_ns = path->own_cpu_ns + wait_ns, .samples = path->calls};
        counted_ns += path->own_cpu_ns;
        has_language |= GP_LOC_MODULE(path->loc) == GP_MODULE_LANGUAGE;
    }
    free(paths);
    snapshot->node_count = (uint32_t)count;
    snapshot->exact = true;
    if (has_language)
        snapshot->total_ns = counted_ns;
    return error != 0 ? error : nodes != NULL ? 0 : -ENOMEM;
}

static int snapshot_by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// The numbers of the functions that nodes refer to, each once. Returns how many; the caller frees *numbers.
static uint32_t snapshot_used_functions(const gp_snapshot_t *snapshot, uint32_t **numbers)
{
    uint32_t count = 0, distinct = 0;
    *numbers = malloc((snapshot->node_count + 1) * sizeof(**numbers));
    if (*numbers == NULL)
        return 0;
    for (uint32_t i = 1; i < snapshot->node_count; i++) {
        gp_loc_t loc = snapshot->nodes[i].loc;
        if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE)
            (*numbers)[count++] = GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(loc));
    }
    if (count > 0)
        qsort(*numbers, count, sizeof(**numbers), snapshot_by_value);
    for (uint32_t i = 0; i < count; i++)
        if (distinct == 0 || (*numbers)[distinct - 1] != (*numbers)[i])
            (*numbers)[distinct++] = (*numbers)[i];
    return distinct;
}

static int snapshot_copy_functions(gp_snapshot_t *snapshot)
{
    uint32_t *numbers, count = snapshot_used_functions(snapshot, &numbers);
    gp_function_info_t *copies = calloc(count + 1, sizeof(*copies));
    for (uint32_t i = 0; i < count && copies != NULL; i++) {
        const gp_function_name_t *function = gp_functions_at(numbers[i]);
        if (function != NULL)
            copies[snapshot->function_count++] =
                (gp_function_info_t){numbers[i], function->first_line, function->name, function->file};
    }
    snapshot->functions = copies;
    int error = numbers != NULL && copies != NULL ? 0 : -ENOMEM;
    free(numbers);
    return error;
}

static void snapshot_copy_totals(gp_snapshot_t *snapshot, prof_t *profile)
{
    gp_profile_ledger(profile, &snapshot->ledger);
    snapshot->total_ns = snapshot->ledger.cpu_ns;
    snapshot->clock = profile->options.clock;
    snapshot->sampled_ns = profile->sampled_ns;
    snapshot->samples = profile->samples;
    snapshot->duration_ns = profile->duration_ns;
    snapshot->start_realtime_ns = profile->start_realtime_ns;
    snapshot->frequency_hz = profile->options.frequency_hz;
    memcpy(snapshot->name, profile->name, sizeof(snapshot->name));
    if (atomic_load_explicit(&profile->state, memory_order_relaxed) == GP_PROFILE_RUNNING)
        snapshot->duration_ns += gp_ticks_to_ns(gp_ticks() - profile->start_ticks);
}

static int snapshot_fill(owned_t *owned, prof_t *profile)
{
    snapshot_copy_totals(&owned->snapshot, profile);
    int error = profile->exact != NULL ? snapshot_copy_calls(&owned->snapshot, profile)
                                       : snapshot_copy_nodes(&owned->snapshot, &profile->tree);
    if (error == 0)
        error = snapshot_copy_modules(&owned->snapshot, false);
    if (error == 0)
        error = snapshot_copy_functions(&owned->snapshot);
    gp_collector_counters(owned->counters);
    owned->counters[GP_COUNTER_TREE_FULL] = profile->tree.crowded;
    owned->snapshot.counters = owned->counters;
    owned->snapshot.counter_count = GP_COUNTER_COUNT;
    gp_not_known_list(owned->not_known);
    owned->snapshot.not_known = owned->not_known;
    return error;
}

gp_snapshot_t *gp_profile_snapshot(prof_t *profile)
{
    bool is_mine = gp_process_is_open(), is_valid = is_mine && gp_profile_is_valid(profile);
    owned_t *owned = is_valid ? calloc(1, sizeof(*owned)) : NULL;
    if (owned == NULL) {
        errno = !is_mine ? ESRCH : is_valid ? ENOMEM : EINVAL;
        return NULL;
    }
    if (atomic_load_explicit(&profile->state, memory_order_acquire) == GP_PROFILE_RUNNING) {
        if (gp_thread_self != NULL)
            gp_slice_settle_now(gp_thread_self);
        gp_collector_sync();
    } else {
        gp_profile_settle(profile);
    }
    gp_drain_enter();
    int error = snapshot_fill(owned, profile);
    gp_drain_leave();
    if (error == 0)
        return &owned->snapshot;
    // -Wanalyzer-malloc-leak: it frees what the snapshot is a part of.
    gp_profile_snapshot_free(&owned->snapshot);
    errno = -error;
    return NULL;
}

static int snapshot_copy_latest(uint32_t since, gp_snapshot_t *snapshot)
{
    gp_loc_t *locs = malloc(GP_MODULES_LATEST * sizeof(*locs));
    gp_snapshot_node_t *nodes = calloc(GP_MODULES_LATEST, sizeof(*nodes));
    size_t count = locs != NULL ? gp_modules_latest(since, locs) : 0;
    for (size_t i = 0; i < count && nodes != NULL; i++)
        nodes[i].loc = locs[i];
    snapshot->nodes = nodes;
    snapshot->node_count = nodes != NULL ? (uint32_t)count : 0;
    free(locs);
    return nodes != NULL ? 0 : -ENOMEM;
}

gp_snapshot_t *gp_profile_latest(uint32_t since)
{
    owned_t *owned = gp_process_is_open() ? calloc(1, sizeof(*owned)) : NULL;
    if (owned == NULL)
        return NULL;
    gp_drain_enter();
    // -Wanalyzer-malloc-leak: gp_profile_snapshot_free() frees what the snapshot is a part of.
    int error = snapshot_copy_modules(&owned->snapshot, true);
    if (error == 0)
        error = snapshot_copy_latest(since, &owned->snapshot);
    gp_drain_leave();
    if (error == 0)
        return &owned->snapshot;
    // -Wanalyzer-malloc-leak: it frees what the snapshot is a part of.
    gp_profile_snapshot_free(&owned->snapshot);
    return NULL;
}
