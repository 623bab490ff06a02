// SPDX-License-Identifier: MIT
#include "report/report_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts/names.h"

enum {
    FRAMES_MAX = 4096, // to have room for: a large tree has the same ones again and again
    DEPTH_MAX = 1024,  // of a stack; of exact mode what lies deeper is in the frame there
};

static bool report_snapshot_has_code(const gp_module_info_t *module)
{
    return module->id > 0 && module->id < GP_MODULE_LANGUAGE;
}

// Make facts of a snapshot's definitions: texts stay its own.
static int report_snapshot_take_definitions(gp_facts_t *facts, const gp_snapshot_t *snapshot)
{
    uint32_t number = 0;
    if (gp_facts_init(facts, false) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < snapshot->module_count && number != GP_INDEX_NONE; i++) {
        if (!report_snapshot_has_code(&snapshot->modules[i]))
            continue;
        number = gp_table_need(&facts->modules.table, snapshot->modules[i].id);
        if (number != GP_INDEX_NONE)
            facts->modules.items[number] = snapshot->modules[i];
    }
    for (uint32_t i = 0; i < snapshot->function_count && number != GP_INDEX_NONE; i++) {
        number = gp_table_need(&facts->functions.table, snapshot->functions[i].number);
        if (number != GP_INDEX_NONE)
            facts->functions.items[number] = snapshot->functions[i];
    }
    return number != GP_INDEX_NONE ? 0 : -ENOMEM;
}

static int report_snapshot_add_mappings(gp_builder_t *builder)
{
    const gp_facts_t *facts = builder->names.facts;
    bool are_wanted = builder->wants & GP_WANT_ADDRESSES;
    int result = 0;
    for (size_t i = 0; i < facts->modules.count && are_wanted && result == 0; i++) {
        const gp_module_info_t *module = &facts->modules.items[i];
        gp_report_mapping_t mapping = {.path = module->path, .start = module->start, .end = module->end};
        uint32_t number = gp_facts_module_number(&builder->names, GP_LOC(module->id, 0));
        result = gp_builder_mapping(builder, number, module->bias, &mapping, module->build_id, module->build_id_len);
    }
    return result;
}

// The kind of a node's time.
static uint32_t report_snapshot_kind_of(gp_loc_t loc)
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

static void report_snapshot_weigh_kinds(const gp_snapshot_t *snapshot, kinds_t *kinds)
{
    *kinds = (kinds_t){.exact_ns = {[GP_KIND_CPU] = snapshot->total_ns}};
    bool has_waits = snapshot->clock == PROF_CLOCK_WALL && !snapshot->exact;
    for (uint32_t kind = GP_KIND_CPU + 1; kind < GP_KIND_COUNT && has_waits; kind++)
        kinds->exact_ns[kind] = gp_ledger_kind_ns(&snapshot->ledger, kind);
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        kinds->sampled_ns[report_snapshot_kind_of(snapshot->nodes[i].loc)] += snapshot->nodes[i].weight_ns;
    if (snapshot->exact) // nothing to scale: all calls are there, waits and all
        kinds->exact_ns[GP_KIND_CPU] = kinds->sampled_ns[GP_KIND_CPU];
}

static uint64_t report_snapshot_scale(const kinds_t *kinds, uint32_t kind, uint64_t weight_ns)
{
    uint64_t exact = kinds->exact_ns[kind], sampled = kinds->sampled_ns[kind];
    return exact > 0 && sampled > 0 ? (uint64_t)((unsigned __int128)weight_ns * exact / sampled) : weight_ns;
}

// Time of which there is no sample.
static int report_snapshot_add_unsampled(gp_builder_t *builder, const kinds_t *kinds)
{
    int result = 0;
    for (uint32_t kind = GP_KIND_CPU + 1; kind < GP_KIND_COUNT && result == 0; kind++) {
        if (kinds->exact_ns[kind] == 0 || kinds->sampled_ns[kind] > 0)
            continue;
        gp_builder_row_begin(builder);
        result = gp_builder_row_loc(builder, GP_LOC(GP_MODULE_PSEUDO, gp_kind_leaf(kind)));
        if (result == 0)
            result = gp_builder_row_end(builder, kinds->exact_ns[kind], 0, 0);
    }
    return result;
}

// The frame of a function that was called: the outermost one at its first instruction.
static uint32_t report_snapshot_called_frame(gp_builder_t *builder, gp_loc_t loc)
{
    gp_builder_row_begin(builder);
    return loc != 0 && gp_builder_row_loc(builder, loc) == 0 ? builder->path[0] : GP_INDEX_NONE;
}

static int report_snapshot_add_calls(gp_builder_t *builder, const gp_snapshot_t *snapshot)
{
    int result = 0;
    for (size_t i = 0; i < snapshot->call_count && result == 0; i++) {
        const gp_call_count_t *call = &snapshot->calls[i];
        uint32_t caller = report_snapshot_called_frame(builder, call->caller_loc);
        uint32_t callee = report_snapshot_called_frame(builder, call->callee_loc);
        result = gp_builder_call(builder, call, caller, callee);
    }
    if (result == 0 && snapshot->exact)
        result = gp_builder_calls_finish(builder, snapshot->clock == PROF_CLOCK_WALL ? 0 : snapshot->total_ns);
    return result;
}

// Add the stack that ends at a node: its ancestors from the root's children down.
static int report_snapshot_add_node(gp_builder_t *builder, const gp_snapshot_t *snapshot, uint32_t node,
                                    uint32_t *chain, const kinds_t *kinds)
{
    const gp_snapshot_node_t *leaf = &snapshot->nodes[node];
    uint32_t depth = 0;
    int result = 0;
    for (uint32_t at = node; at != 0; at = snapshot->nodes[at].parent)
        chain[depth++] = at;
    gp_builder_row_begin(builder);
    uint32_t end = snapshot->exact && depth > DEPTH_MAX ? depth - DEPTH_MAX : 0;
    while (depth > end && result == 0)
        result = gp_builder_row_loc(builder, snapshot->nodes[chain[--depth]].loc);
    if (result == 0)
        result = gp_builder_row_end(builder,
                                    report_snapshot_scale(kinds, report_snapshot_kind_of(leaf->loc), leaf->weight_ns),
                                    leaf->samples, 0);
    return result;
}

static int report_snapshot_add_nodes(gp_builder_t *builder, const gp_snapshot_t *snapshot, const kinds_t *kinds)
{
    // No chain is longer than the tree has nodes.
    uint32_t *chain = malloc(((size_t)snapshot->node_count + 1) * sizeof(*chain));
    int result = chain ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < snapshot->node_count && result == 0; i++)
        if (snapshot->nodes[i].samples > 0 || snapshot->nodes[i].weight_ns > 0)
            result = report_snapshot_add_node(builder, snapshot, i, chain, kinds);
    free(chain);
    return result == 0 ? report_snapshot_add_unsampled(builder, kinds) : result;
}

static const char *const *report_snapshot_copy_not_known(gp_builder_t *builder, const char *const *texts)
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
    gp_facts_t facts = {0};
    gp_builder_t *builder = gp_builder_create(&facts, symbolizer, wants);
    gp_report_t *report = NULL;
    uint32_t frames = snapshot->node_count < FRAMES_MAX ? snapshot->node_count : FRAMES_MAX;
    kinds_t kinds;
    report_snapshot_weigh_kinds(snapshot, &kinds);
    if (builder != NULL) {
        builder->symbols_stay = true;
        builder->report.exact_rows = snapshot->exact;
    }
    if (report_snapshot_take_definitions(&facts, snapshot) < 0 || builder == NULL ||
        gp_builder_reserve(builder, frames) < 0 || report_snapshot_add_mappings(builder) < 0 ||
        report_snapshot_add_nodes(builder, snapshot, &kinds) < 0 || report_snapshot_add_calls(builder, snapshot) < 0)
        goto out;
    report = &builder->report;
    report->duration_ns = snapshot->duration_ns;
    report->start_realtime_ns = snapshot->start_realtime_ns;
    report->frequency_hz = snapshot->exact ? 0 : snapshot->frequency_hz;
    report->title = gp_arena_text(&builder->arena, snapshot->name, strnlen(snapshot->name, sizeof(snapshot->name)));
    report->counters =
        gp_arena_copy(&builder->arena, snapshot->counters, snapshot->counter_count * sizeof(*snapshot->counters));
    report->counter_count = snapshot->counter_count;
    report->not_known = report_snapshot_copy_not_known(builder, snapshot->not_known);
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
    gp_facts_free(&facts);
    return report;
}
