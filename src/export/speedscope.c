// SPDX-License-Identifier: MIT
// Speedscope's own JSON: one profile with everything, and one for each of the heaviest coroutines.
// They are sampled profiles; the order of samples is by weight, as a report knows no times: so the unit is none, and
// what Speedscope calls "Time Order" has no axis of time. Weights are nanoseconds.
//
// Source: speedscope's file-format-spec.ts.
#include "export/formats.h"

#include <errno.h>
#include <stdlib.h>

#include "export/function_table.h"
#include "export/output.h"
#include "export/write/json_text.h"
#include "report/report_coros.h"
#include "report/report_words.h"

typedef struct speedscope {
    const gp_report_t *report;
    gp_function_table_t *table;
    gp_report_coro_t *coros; // heaviest first
    size_t count;
    const gp_report_coro_t *of; // the profile being written is this coroutine's; NULL = everything
    gp_json_t json;
} speedscope_t;

static void speedscope_put_stack(speedscope_t *speedscope, const gp_report_row_t *row)
{
    gp_json_t *json = &speedscope->json;
    gp_json_line(json);
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < row->depth; i++)
        gp_json_uint(json, speedscope->table->of_frame[row->frames[i]]);
    gp_json_close(json, ']');
}

static int speedscope_put_stacks(void *context, const gp_report_row_t *rows, size_t count)
{
    speedscope_t *speedscope = context;
    for (size_t i = 0; i < count; i++)
        if (gp_report_coro_has(speedscope->of, speedscope->report, &rows[i]))
            speedscope_put_stack(speedscope, &rows[i]);
    return gp_output_state(speedscope->json.out);
}

static int speedscope_put_weights(void *context, const gp_report_row_t *rows, size_t count)
{
    speedscope_t *speedscope = context;
    for (size_t i = 0; i < count; i++)
        if (gp_report_coro_has(speedscope->of, speedscope->report, &rows[i]))
            gp_json_uint(&speedscope->json, rows[i].weight_ns);
    return 0;
}

// A profile of a coroutine; NULL = of everything.
static int speedscope_put_profile(speedscope_t *speedscope, const gp_report_coro_t *of, const char *name)
{
    const gp_report_t *report = speedscope->report;
    gp_json_t *json = &speedscope->json;
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_text(json, "type", "sampled");
    gp_json_key_text(json, "name", name);
    gp_json_key_text(json, "unit", "nanoseconds"); // widths, not an order in time
    gp_json_key_uint(json, "startValue", 0);
    gp_json_key_uint(json, "endValue", of ? of->weight_ns : report->total_ns);
    gp_json_key(json, "samples");
    gp_json_open(json, '[');
    speedscope->of = of;
    int result = gp_report_each_part(report, speedscope_put_stacks, speedscope);
    gp_json_close(json, ']');
    gp_json_key(json, "weights");
    gp_json_open(json, '[');
    if (result == 0)
        result = gp_report_each_part(report, speedscope_put_weights, speedscope);
    gp_json_close(json, ']');
    gp_json_close(json, '}');
    return result;
}

static void speedscope_put_frames(speedscope_t *speedscope)
{
    gp_json_t *json = &speedscope->json;
    gp_json_key(json, "shared");
    gp_json_open(json, '{');
    gp_json_key(json, "frames");
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < speedscope->table->function_count; i++) {
        const gp_report_frame_t *frame = speedscope->table->functions[i].frame;
        gp_json_line(json);
        gp_json_open(json, '{');
        gp_json_key_text(json, "name", frame->function);
        if (!frame->pseudo && frame->file[0] != '\0')
            gp_json_key_text(json, "file", frame->file);
        if (frame->first_line > 0)
            gp_json_key_uint(json, "line", frame->first_line);
        gp_json_close(json, '}');
    }
    gp_json_close(json, ']');
    gp_json_close(json, '}');
}

static int speedscope_put_all(speedscope_t *speedscope)
{
    gp_json_t *json = &speedscope->json;
    char name[320];
    gp_json_open(json, '{');
    gp_json_key_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    gp_json_key_text(json, "name", speedscope->report->title);
    gp_json_key_text(json, "exporter", "greenprof");
    gp_json_key_uint(json, "activeProfileIndex", 0);
    gp_json_line(json);
    speedscope_put_frames(speedscope);
    gp_json_line(json);
    gp_json_key(json, "profiles");
    gp_json_open(json, '[');
    snprintf(name, sizeof(name), "%s in ns, by weight", gp_measure_words(speedscope->report->measure));
    int result = speedscope_put_profile(speedscope, NULL, name);
    for (size_t i = 0; i < speedscope->count && i < GP_HEAVIEST_MAX && result == 0; i++)
        result = speedscope_put_profile(speedscope, &speedscope->coros[i],
                                        gp_report_coro_name(&speedscope->coros[i], name, sizeof(name)));
    gp_json_close(json, ']');
    gp_json_close(json, '}');
    putc('\n', json->out);
    return result;
}

int gp_speedscope_write(const gp_report_t *report, FILE *out)
{
    speedscope_t speedscope = {
        .report = report,
        .table = gp_function_table_create_uncharged(report),
        .json = {.out = out},
    };
    int result = -ENOMEM;
    if (speedscope.table != NULL)
        speedscope.coros = gp_report_coros_create(report, &speedscope.count);
    if (speedscope.coros != NULL)
        result = speedscope_put_all(&speedscope);
    gp_function_table_free(speedscope.table);
    free(speedscope.coros);
    return result;
}
