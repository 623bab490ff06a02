// SPDX-License-Identifier: MIT
#include "report/report_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAMES_MAX = 4096, // to have room for: a large tree has the same ones again and again
    DEPTH_MAX = 1024,  // of a stack; of exact mode what lies deeper is in the frame there
};

typedef struct module_map { // module ids of a snapshot to the symbolizer's numbers
    const gp_snapshot_t *snapshot;
    gp_symbolizer_t *symbolizer;
    uint32_t *infos;   // by id: number in the snapshot plus 1; 0 = none
    uint32_t *numbers; // by id; GP_SYMBOLIZER_NO_MODULE = not asked for: few of a process' modules are on stacks
    uint32_t count;
} module_map_t;

static bool has_code(const gp_module_info_t *module)
{
    return module->id > 0 && module->id < GP_MODULE_LANGUAGE;
}

static int map_modules(module_map_t *map)
{
    const gp_snapshot_t *snapshot = map->snapshot;
    for (uint32_t i = 0; i < snapshot->module_count; i++)
        if (has_code(&snapshot->modules[i]) && snapshot->modules[i].id >= map->count)
            map->count = snapshot->modules[i].id + 1;
    map->infos = calloc((size_t)map->count + 1, sizeof(*map->infos));
    map->numbers = malloc(((size_t)map->count + 1) * sizeof(*map->numbers));
    if (map->infos == NULL || map->numbers == NULL)
        return -ENOMEM;
    for (uint32_t id = 0; id < map->count; id++)
        map->numbers[id] = GP_SYMBOLIZER_NO_MODULE;
    for (uint32_t i = 0; i < snapshot->module_count; i++)
        if (has_code(&snapshot->modules[i]))
            map->infos[snapshot->modules[i].id] = i + 1;
    return 0;
}

static void free_map(module_map_t *map)
{
    free(map->infos);
    free(map->numbers);
}

static uint32_t module_number(const module_map_t *map, uint32_t id)
{
    if (id >= map->count || map->infos[id] == 0)
        return GP_SYMBOLIZER_NO_MODULE;
    const gp_module_info_t *module = &map->snapshot->modules[map->infos[id] - 1];
    if (map->numbers[id] == GP_SYMBOLIZER_NO_MODULE)
        map->numbers[id] = gp_symbolizer_module(map->symbolizer, module->path, strlen(module->path), module->build_id,
                                                module->build_id_len);
    return map->numbers[id];
}

static int add_mappings(gp_builder_t *builder, const gp_snapshot_t *snapshot, const module_map_t *modules)
{
    bool are_wanted = builder->wants & GP_WANT_ADDRESSES;
    int result = 0;
    for (uint32_t i = 0; i < snapshot->module_count && are_wanted && result == 0; i++) {
        const gp_module_info_t *module = &snapshot->modules[i];
        gp_mapping_t mapping = {.path = module->path, .start = module->start, .end = module->end};
        if (has_code(module))
            result = gp_builder_mapping(builder, module_number(modules, module->id), module->bias, &mapping,
                                        module->build_id, module->build_id_len);
    }
    return result;
}

static int look_up_function(gp_builder_t *builder, const gp_snapshot_t *snapshot, gp_loc_t loc)
{
    uint64_t offset = GP_LOC_OFFSET(loc);
    uint32_t lo = 0, hi = snapshot->function_count, number = GP_LANGUAGE_FUNCTION(offset);
    while (lo < hi) { // by number
        uint32_t mid = lo + (hi - lo) / 2;
        const gp_function_info_t *function = &snapshot->functions[mid];
        if (function->number == number)
            return gp_builder_row_function(builder, function->name, function->file, function->first_line,
                                           GP_LANGUAGE_LINE(offset));
        if (function->number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return gp_builder_row_function(builder, NULL, NULL, 0, 0);
}

// Most of a stack's locations are those of the stack before.
static int add_function(gp_builder_t *builder, const gp_snapshot_t *snapshot, gp_loc_t loc)
{
    int result = gp_builder_row_noted(builder, loc);
    if (result == -ENOENT && (result = look_up_function(builder, snapshot, loc)) == 0)
        result = gp_builder_note(builder, loc);
    return result;
}

// What kind of time a node is.
static uint32_t kind_of(gp_loc_t loc)
{
    uint32_t kind = GP_LOC_MODULE(loc) == GP_MODULE_PSEUDO ? GP_KIND_COUNT - 1 : GP_KIND_CPU;
    if (gp_kind_is_told(loc))
        return GP_KIND_READY;
    while (kind > GP_KIND_CPU && GP_LOC_OFFSET(loc) != gp_kind_leaf(kind))
        kind--;
    return kind;
}

// Samples say how the time of a kind is distributed; the ledger, how much it is.
typedef struct kinds {
    uint64_t exact_ns[GP_KIND_COUNT], sampled_ns[GP_KIND_COUNT];
} kinds_t;

static void weigh_kinds(const gp_snapshot_t *snapshot, kinds_t *kinds)
{
    *kinds = (kinds_t){.exact_ns = {[GP_KIND_CPU] = snapshot->total_ns}};
    bool has_waits = snapshot->clock == PROF_CLOCK_WALL && !snapshot->exact;
    for (uint32_t kind = GP_KIND_CPU + 1; kind < GP_KIND_COUNT && has_waits; kind++)
        kinds->exact_ns[kind] = gp_ledger_kind_ns(&snapshot->ledger, kind);
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        kinds->sampled_ns[kind_of(snapshot->nodes[i].loc)] += snapshot->nodes[i].weight_ns;
    if (snapshot->exact) // nothing to scale: all calls are there, waits and all
        kinds->exact_ns[GP_KIND_CPU] = kinds->sampled_ns[GP_KIND_CPU];
}

static uint64_t scale(const kinds_t *kinds, uint32_t kind, uint64_t weight_ns)
{
    uint64_t exact = kinds->exact_ns[kind], sampled = kinds->sampled_ns[kind];
    return exact > 0 && sampled > 0 ? (uint64_t)((unsigned __int128)weight_ns * exact / sampled) : weight_ns;
}

// Time of which there is no sample.
static int add_unsampled(gp_builder_t *builder, const kinds_t *kinds)
{
    int result = 0;
    for (uint32_t kind = GP_KIND_CPU + 1; kind < GP_KIND_COUNT && result == 0; kind++) {
        if (kinds->exact_ns[kind] == 0 || kinds->sampled_ns[kind] > 0)
            continue;
        gp_builder_row_begin(builder);
        result = gp_builder_row_loc(builder, GP_SYMBOLIZER_NO_MODULE, GP_LOC(GP_MODULE_PSEUDO, gp_kind_leaf(kind)));
        if (result == 0)
            result = gp_builder_row_end(builder, kinds->exact_ns[kind], 0, 0);
    }
    return result;
}

static int add_loc(gp_builder_t *builder, const gp_snapshot_t *snapshot, const module_map_t *modules, gp_loc_t loc)
{
    if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE)
        return add_function(builder, snapshot, loc);
    return gp_builder_row_loc(builder, module_number(modules, GP_LOC_MODULE(loc)), loc);
}

// The frame of a function that was called: the outermost one at its first instruction.
static uint32_t called_frame(gp_builder_t *builder, const gp_snapshot_t *snapshot, const module_map_t *modules,
                             gp_loc_t loc)
{
    gp_builder_row_begin(builder);
    return loc != 0 && add_loc(builder, snapshot, modules, loc) == 0 ? builder->path[0] : GP_INDEX_NONE;
}

static int add_calls(gp_builder_t *builder, const gp_snapshot_t *snapshot, const module_map_t *modules)
{
    int result = 0;
    for (size_t i = 0; i < snapshot->call_count && result == 0; i++) {
        const gp_call_count_t *call = &snapshot->calls[i];
        uint32_t caller = called_frame(builder, snapshot, modules, call->caller_loc);
        uint32_t callee = called_frame(builder, snapshot, modules, call->callee_loc);
        result = gp_builder_call(builder, call, caller, callee);
    }
    if (result == 0 && snapshot->exact)
        result = gp_builder_calls_finish(builder, snapshot->clock == PROF_CLOCK_WALL ? 0 : snapshot->total_ns);
    return result;
}

// Add the stack that ends at a node: its ancestors from the root's children down.
static int add_node(gp_builder_t *builder, const gp_snapshot_t *snapshot, const module_map_t *modules, uint32_t node,
                    uint32_t *chain, const kinds_t *kinds)
{
    const gp_snapshot_node_t *leaf = &snapshot->nodes[node];
    uint32_t depth = 0;
    int result = 0;
    for (uint32_t at = node; at != 0; at = snapshot->nodes[at].parent)
        chain[depth++] = at;
    gp_builder_row_begin(builder);
    uint32_t end = snapshot->exact && depth > DEPTH_MAX ? depth - DEPTH_MAX : 0;
    while (depth > end && result == 0) {
        gp_loc_t loc = snapshot->nodes[chain[--depth]].loc;
        result = add_loc(builder, snapshot, modules, loc);
    }
    if (result == 0)
        result = gp_builder_row_end(builder, scale(kinds, kind_of(leaf->loc), leaf->weight_ns), leaf->samples, 0);
    return result;
}

static int add_nodes(gp_builder_t *builder, const gp_snapshot_t *snapshot, const module_map_t *modules,
                     const kinds_t *kinds)
{
    // No chain is longer than the tree has nodes.
    uint32_t *chain = malloc(((size_t)snapshot->node_count + 1) * sizeof(*chain));
    int result = chain ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < snapshot->node_count && result == 0; i++)
        if (snapshot->nodes[i].samples > 0 || snapshot->nodes[i].weight_ns > 0)
            result = add_node(builder, snapshot, modules, i, chain, kinds);
    free(chain);
    return result == 0 ? add_unsampled(builder, kinds) : result;
}

static const char *const *copy_not_known(gp_builder_t *builder, const char *const *texts)
{
    size_t count = 0;
    while (texts != NULL && texts[count] != NULL)
        count++;
    const char **list = gp_arena_alloc(&builder->arena, (count + 1) * sizeof(*list)); // zeroed
    for (size_t i = 0; i < count && list != NULL; i++)
        list[i] = gp_arena_text(&builder->arena, texts[i], strlen(texts[i]));
    return list;
}

gp_report_t *gp_report_from_snapshot(const gp_snapshot_t *snapshot, unsigned wants, gp_symbolizer_t *symbolizer)
{
    gp_builder_t *builder = gp_builder_create(symbolizer, wants);
    module_map_t modules = {.snapshot = snapshot, .symbolizer = symbolizer};
    gp_report_t *report = NULL;
    uint32_t frames = snapshot->node_count < FRAMES_MAX ? snapshot->node_count : FRAMES_MAX;
    kinds_t kinds;
    weigh_kinds(snapshot, &kinds);
    if (builder != NULL) {
        builder->symbols_stay = true;
        builder->report.exact_rows = snapshot->exact;
    }
    if (builder == NULL || gp_builder_reserve(builder, frames) < 0 || map_modules(&modules) < 0 ||
        add_mappings(builder, snapshot, &modules) < 0 || add_nodes(builder, snapshot, &modules, &kinds) < 0 ||
        add_calls(builder, snapshot, &modules) < 0)
        goto out;
    report = &builder->report;
    report->duration_ns = snapshot->duration_ns;
    report->start_realtime_ns = snapshot->start_realtime_ns;
    report->frequency_hz = snapshot->exact ? 0 : snapshot->frequency_hz;
    report->title = gp_arena_text(&builder->arena, snapshot->name, strnlen(snapshot->name, sizeof(snapshot->name)));
    report->counters =
        gp_arena_copy(&builder->arena, snapshot->counters, snapshot->counter_count * sizeof(*snapshot->counters));
    report->counter_count = snapshot->counter_count;
    report->not_known = copy_not_known(builder, snapshot->not_known);
    if (report->title == NULL || report->counters == NULL) {
        report = NULL;
        goto out;
    }
    uint64_t total = snapshot->exact ? builder->report.sampled_ns : 0;
    for (int kind = 0; kind < GP_KIND_COUNT && !snapshot->exact; kind++)
        total += kinds.exact_ns[kind];
    report->measure = snapshot->clock == PROF_CLOCK_WALL ? GP_MEASURE_WALL : GP_MEASURE_CPU;
    report->cpu_ns = snapshot->total_ns;
    report = gp_builder_finish(builder, total);
    builder = NULL;
out:
    if (report == NULL) {
        gp_builder_free(builder);
        errno = ENOMEM;
    }
    free_map(&modules);
    return report;
}
