// SPDX-License-Identifier: MIT
#include "report_json.h"

#include <errno.h>
#include <stdlib.h>

static void report_json_seconds(gp_json_t *json, const char *key, double seconds)
{
    gp_json_key_uint(json, key, seconds > 0 ? (uint64_t)(seconds * 1e9 + 0.5) : 0);
}

void gp_report_json_known(gp_json_t *json, const char *key, bool is_known, uint64_t value)
{
    gp_json_key(json, key);
    if (is_known)
        gp_json_uint(json, value);
    else
        gp_json_null(json);
}

void gp_report_json_states(gp_json_t *json, const uint64_t *parts_ns, bool is_known)
{
    static const char *const keys[GP_KIND_COUNT] = {
        [GP_KIND_CPU] = "cpu_ns",     [GP_KIND_BLOCKED] = "blocked_ns", [GP_KIND_PREEMPTED] = "preempted_ns",
        [GP_KIND_READY] = "ready_ns", [GP_KIND_PARKED] = "parked_ns",   [GP_KIND_WAITING] = "waiting_ns",
        [GP_KIND_GIL] = "gil_ns",     [GP_KIND_LOCK] = "lock_ns",       [GP_KIND_QUEUED] = "queued_ns"};
    for (size_t i = 0; i < GP_KIND_COUNT; i++)
        if (keys[i] != NULL)
            gp_report_json_known(json, keys[i], is_known, parts_ns[i]);
}

size_t gp_report_json_restrict(gp_row_limits_t restrictions, uint32_t *rows, size_t count, gp_row_limit_name_t name,
                               const void *context)
{
    for (size_t i = 0; i < restrictions.count; i++)
        count = gp_row_limit_apply(&restrictions.items[i], rows, count, name, context);
    return count;
}

void gp_report_json_begin(gp_json_t *json, const gp_input_t *source, const gp_report_t *report, const char *by)
{
    static const char *const measures[] = {[GP_MEASURE_CPU] = "cpu",
                                           [GP_MEASURE_WALL] = "wall",
                                           [GP_MEASURE_DELAY] = "delay",
                                           [GP_MEASURE_LATENCY] = "latency"};
    bool is_exact = report->basis == GP_BASIS_EXACT;
    gp_json_open(json, '{');
    gp_json_key_uint(json, "version", GP_REPORT_JSON_VERSION);
    gp_json_key_text(json, "file", source->path);
    gp_json_key_text(json, "program", source->dataset->facts.exe);
    gp_json_key_text(json, "part", source->choice);
    gp_json_key_text(json, "by", by != NULL ? by : "function");
    gp_json_key_text(json, "measure", measures[report->measure]);
    gp_json_key_uint(json, "duration_ns", report->duration_ns);
    gp_report_json_known(json, "total_ns", !report->is_unknown, report->total_ns);
    gp_report_json_known(json, "exact_cpu_ns", is_exact, report->cpu_ns);
    gp_json_key_uint(json, "sampled_ns", report->sampled_ns);
    gp_json_key_uint(json, "samples", report->samples);
    gp_json_key(json, "rows");
    gp_json_open(json, '[');
    gp_json_line(json);
}

void gp_report_json_end(gp_json_t *json)
{
    gp_json_close(json, '}');
    fputc('\n', json->out);
}

static const char *report_json_name_of(const void *context, uint32_t row)
{
    return ((const gp_stats_t *)context)->items[row].text;
}

static void report_json_function(gp_json_t *json, const gp_stat_t *stat)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "function", stat->function);
    gp_json_key_text(json, "file", stat->file);
    gp_json_key_uint(json, "line", stat->line);
    gp_json_key_uint(json, "calls", stat->calls);
    gp_json_key_uint(json, "primitive_calls", stat->primitive_calls);
    report_json_seconds(json, "own_ns", stat->own_s);
    report_json_seconds(json, "total_ns", stat->total_s);
    gp_json_close(json, '}');
    gp_json_line(json);
}

int gp_report_json_functions(gp_json_t *json, const gp_stats_t *stats, gp_row_limits_t restrictions)
{
    uint32_t *rows = calloc(stats->count + 1, sizeof(*rows));
    if (rows == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < stats->count; i++)
        rows[i] = stats->order[i];
    size_t count = gp_report_json_restrict(restrictions, rows, stats->count, report_json_name_of, stats);
    for (size_t i = 0; i < count; i++)
        report_json_function(json, &stats->items[rows[i]]);
    free(rows);
    gp_json_close(json, ']');
    return 0;
}
