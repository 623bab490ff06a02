// SPDX-License-Identifier: MIT
#include "census_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "census_held.h"
#include "export/write/json_text.h"
#include "print.h"

static const char *const state_names[GP_CENSUS_STATES] = {
    [GP_CENSUS_UNKNOWN] = "unknown", [GP_CENSUS_RUNNING] = "running", [GP_CENSUS_BLOCKED] = "blocked",
    [GP_CENSUS_READY] = "ready",     [GP_CENSUS_PARKED] = "parked",   [GP_CENSUS_WAITING] = "waiting",
    [GP_CENSUS_NEW] = "new",         [GP_CENSUS_AWAY] = "away",       [GP_CENSUS_IDLE] = "idle",
};

enum { OLD_MS = 100 }; // of a census, when the capture goes on: a reader is told

// Called with each frame of a stack, innermost first. file: "" where there is none.
typedef void frame_visit_t(void *context, const char *function, const char *file, uint32_t line);

static void census_print_visit_stack(const gp_input_t *source, uint32_t stack, frame_visit_t *visit, void *context)
{
    const gp_facts_stack_t *found = &source->dataset->facts.stacks.items[stack];
    gp_namer_t namer = {.facts = &source->dataset->facts, .symbolizer = source->symbolizer};
    gp_name_t name;
    for (uint16_t i = 0; stack != 0 && i < found->depth; i++) {
        if (gp_facts_name(&namer, found->frames[i], &name) < 0)
            continue;
        bool is_code = name.symbol != &name.made;
        for (const gp_symbol_t *symbol = name.symbol; symbol != NULL; symbol = symbol->outer)
            if (!gp_symbol_is_hidden(symbol))
                visit(context, symbol->function, symbol->line != 0 || !is_code ? symbol->file : "", symbol->line);
    }
}

static void census_print_place(const char *function, const char *gap, const char *file, uint32_t line)
{
    const char *slash = strrchr(file, '/');
    gp_print_text(function);
    if (file[0] != '\0') {
        printf("%s(", gap);
        gp_print_text(slash ? slash + 1 : file);
        printf(":%" PRIu32 ")", line);
    }
}

static void census_print_frame(void *context, const char *function, const char *file, uint32_t line)
{
    (void)context;
    printf("    ");
    census_print_place(function, "  ", file, line);
    printf("\n");
}

static void census_print_take_first(void *context, const char *function, const char *file, uint32_t line)
{
    gp_census_frame_t *frame = context;
    if (frame->function[0] != '\0')
        return;
    snprintf(frame->function, sizeof(frame->function), "%s", function);
    snprintf(frame->file, sizeof(frame->file), "%s", file);
    frame->line = line;
}

bool gp_census_innermost(const gp_input_t *source, uint32_t stack, gp_census_frame_t *frame)
{
    *frame = (gp_census_frame_t){.line = 0};
    census_print_visit_stack(source, stack, census_print_take_first, frame);
    return frame->function[0] != '\0';
}

void gp_census_print_frame(const gp_census_frame_t *frame)
{
    census_print_place(frame->function, " ", frame->file, frame->line);
}

static void census_print_count(size_t count, const char *what)
{
    printf("%zu %s%s", count, what, count == 1 ? "" : "s");
}

static bool census_print_any_polled(const gp_census_groups_t *groups, const gp_input_t *source)
{
    for (size_t i = 0; i < groups->entry_count; i++)
        if (source->dataset->facts.coros.items[groups->entries[i].coro].record.kind == GP_CORO_POLLED)
            return true;
    return false;
}

// When the census was taken, ns since the capture's start.
static uint64_t census_print_time_of(const gp_census_groups_t *groups)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < groups->entry_count; i++)
        if (groups->entries[i].record->time_ns > latest)
            latest = groups->entries[i].record->time_ns;
    return latest;
}

// A capture without an end has the census before it.
static void census_print_age(const gp_census_groups_t *groups, const gp_input_t *source)
{
    uint64_t time_ns = census_print_time_of(groups), end_ns = source->dataset->facts.end_ns;
    if (groups->entry_count == 0 || end_ns < time_ns + OLD_MS * 1000000ull)
        return;
    printf("As of ");
    gp_print_seconds(time_ns, 0);
    printf(" s; the capture goes on until ");
    gp_print_seconds(end_ns, 0);
    printf(" s.\n");
}

static void census_print_overview(const gp_census_groups_t *groups, const gp_input_t *source)
{
    const char *separator = ": ";
    census_print_count(groups->entry_count - groups->threads, "coroutine");
    for (size_t i = 0; i < GP_CENSUS_STATES; i++) {
        if (groups->states[i] == 0)
            continue;
        printf("%s%zu %s", separator, groups->states[i], state_names[i]);
        separator = ", ";
    }
    printf("; ");
    census_print_count(groups->threads, "thread");
    printf("\n");
    if (groups->states[GP_CENSUS_UNKNOWN] > 0)
        printf("%s: switches were not seen, so that states and stacks are not known; times are ages.\n",
               census_print_any_polled(groups, source) ? "Polled at samples" : "Not sampled");
    census_print_age(groups, source);
    gp_census_print_held(source, false);
}

static const char *census_print_missing_stack(const gp_census_entry_t *entry)
{
    switch (entry->record->state) {
    case GP_CENSUS_RUNNING:
        return "[on the CPU]";
    case GP_CENSUS_NEW:
        return "[not started]";
    case GP_CENSUS_AWAY:
        return "[its coroutines run]";
    default:
        return "[no stack known]";
    }
}

static void census_print_entry(const gp_input_t *source, const gp_census_entry_t *entry)
{
    const gp_census_record_t *record = entry->record;
    char name[256], trace[48];
    gp_report_coro_label(source->dataset, entry->coro, source->symbolizer, true, name, sizeof(name));
    printf("  %8" PRIu64 "  %-7s %s", record->coro_id, state_names[record->state],
           record->flags & GP_CENSUS_AT_LEAST ? ">=" : "  ");
    gp_print_seconds(record->state_ns, 10);
    printf(" s  ");
    gp_print_text(name);
    if (entry->trace != 0) {
        gp_report_trace_label(source->dataset, entry->trace, true, trace, sizeof(trace));
        printf("  trace %s", trace);
    }
    if (source->dataset->facts.coros.items[entry->coro].record.parent_id != 0)
        printf("  of %" PRIu64, source->dataset->facts.coros.items[entry->coro].record.parent_id);
    printf("%s\n", record->flags & GP_CENSUS_FATAL ? "  here the fatal signal came in" : "");
}

// No stack of one that runs is to be had but by a sample.
static void census_print_sampled(const gp_census_group_t *group)
{
    uint32_t age_us = 0;
    for (size_t i = 0; i < group->count; i++)
        if (group->entries[i].record->stack_age_us > age_us)
            age_us = group->entries[i].record->stack_age_us;
    printf("    [on the CPU, sampled ");
    gp_print_ms(age_us * UINT64_C(1000), 0);
    printf(" ms before]\n");
}

static void census_print_group(const gp_census_group_t *group, const gp_input_t *source, uint64_t members)
{
    size_t shown = members != 0 && members < group->count ? (size_t)members : group->count;
    printf("\n");
    if (source->dataset->facts.coros.items[group->entries->coro].record.kind == GP_CORO_THREAD)
        census_print_count(group->count, "stack");
    else
        census_print_count(group->count, "coroutine");
    printf(", the longest for ");
    gp_print_seconds(group->entries->record->state_ns, 0);
    printf(" s\n");
    if (group->entries->stack == 0)
        printf("    %s\n", census_print_missing_stack(group->entries));
    else if (group->entries->record->state == GP_CENSUS_RUNNING && group->entries->record->stack_age_us != 0)
        census_print_sampled(group);
    census_print_visit_stack(source, group->entries->stack, census_print_frame, NULL);
    for (size_t i = 0; i < shown; i++)
        census_print_entry(source, &group->entries[i]);
    if (shown < group->count)
        printf("  ... and %zu more\n", group->count - shown);
}

void gp_census_print(const gp_census_groups_t *groups, const gp_input_t *source, uint64_t rows, uint64_t members)
{
    size_t shown = rows != 0 && rows < groups->group_count ? (size_t)rows : groups->group_count;
    census_print_overview(groups, source);
    for (size_t i = 0; i < shown; i++)
        census_print_group(&groups->groups[i], source, members);
    if (shown < groups->group_count)
        printf("\n... and %zu more stacks\n", groups->group_count - shown);
}

static void census_print_json_frame(void *context, const char *function, const char *file, uint32_t line)
{
    gp_json_t *json = context;
    gp_json_open(json, '{');
    gp_json_key_text(json, "function", function);
    if (file[0] != '\0') {
        gp_json_key_text(json, "file", file);
        gp_json_key_uint(json, "line", line);
    }
    gp_json_close(json, '}');
}

static void census_print_json_entry(gp_json_t *json, const gp_input_t *source, const gp_census_entry_t *entry)
{
    const gp_dataset_t *dataset = source->dataset;
    const gp_census_record_t *record = entry->record;
    uint32_t thread = gp_dataset_thread_find(dataset, record->thread);
    char name[256], trace[48];
    gp_report_coro_label(dataset, entry->coro, source->symbolizer, true, name, sizeof(name));
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_uint(json, "id", record->coro_id);
    gp_json_key_text(json, "name", name);
    gp_json_key_text(json, "state", state_names[record->state]);
    gp_json_key(json, "state_ms");
    gp_json_milliseconds(json, record->state_ns);
    if (dataset->facts.coros.items[entry->coro].record.parent_id != 0)
        gp_json_key_uint(json, "spawner", dataset->facts.coros.items[entry->coro].record.parent_id);
    if (record->flags & GP_CENSUS_AT_LEAST) {
        gp_json_key(json, "at_least");
        gp_json_bool(json, true);
    }
    if (record->stack_age_us != 0) {
        gp_json_key(json, "sampled_before_ms");
        gp_json_milliseconds(json, record->stack_age_us * UINT64_C(1000));
    }
    if (record->flags & GP_CENSUS_FATAL) {
        gp_json_key(json, "fatal");
        gp_json_bool(json, true);
    }
    if (dataset->facts.coros.items[entry->coro].record.kind == GP_CORO_THREAD) {
        gp_json_key(json, "is_thread");
        gp_json_bool(json, true);
    }
    if (thread != GP_INDEX_NONE)
        gp_json_key_uint(json, "tid", dataset->facts.threads.items[thread].tid);
    if (entry->trace != 0) {
        gp_report_trace_label(dataset, entry->trace, true, trace, sizeof(trace));
        gp_json_key_text(json, "trace", trace);
    }
    gp_json_close(json, '}');
}

void gp_census_print_json(const gp_census_groups_t *groups, const gp_input_t *source)
{
    gp_json_t json = {.out = stdout};
    gp_json_open(&json, '{');
    gp_json_key_uint(&json, "pid", source->dataset->facts.header.pid);
    gp_json_key_uint(&json, "coroutines", groups->entry_count - groups->threads);
    gp_json_key_uint(&json, "threads", groups->threads);
    gp_json_key(&json, "at_ms");
    gp_json_milliseconds(&json, census_print_time_of(groups));
    gp_json_key(&json, "recorded_ms");
    gp_json_milliseconds(&json, source->dataset->facts.end_ns);
    gp_json_key(&json, "groups");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < groups->group_count; i++) {
        const gp_census_group_t *group = &groups->groups[i];
        gp_json_line(&json);
        gp_json_open(&json, '{');
        gp_json_key_uint(&json, "count", group->count);
        gp_json_key(&json, "stack");
        gp_json_open(&json, '[');
        census_print_visit_stack(source, group->entries->stack, census_print_json_frame, &json);
        gp_json_close(&json, ']');
        gp_json_key(&json, "members");
        gp_json_open(&json, '[');
        for (size_t j = 0; j < group->count; j++)
            census_print_json_entry(&json, source, &group->entries[j]);
        gp_json_close(&json, ']');
        gp_json_close(&json, '}');
    }
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    printf("\n");
}
