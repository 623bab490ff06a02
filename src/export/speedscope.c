// Speedscope's own JSON: one profile with everything, and one for each of the heaviest coroutines.
// They are sampled profiles; the order of samples is by weight, as a report knows no times.
//
// Source: speedscope's file-format-spec.ts.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/function_table.h"
#include "export/json_text.h"

enum { COROUTINES_MAX = 50 }; // more make a menu that nobody reads

typedef struct coroutine {
    const gp_label_t *label; // one of its labels
    uint64_t weight_ns;
} coroutine_t;

typedef struct speedscope {
    const gp_report_t *report;
    gp_function_table_t *table;
    coroutine_t *coroutines;
    size_t count;
    gp_json_t json;
} speedscope_t;

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = ((const coroutine_t *)left)->label->coroutine_id;
    uint64_t b = ((const coroutine_t *)right)->label->coroutine_id;

    return a < b ? -1 : a > b;
}

static int compare_weights(const void *left, const void *right)
{
    const coroutine_t *a = left, *b = right;

    if (a->weight_ns != b->weight_ns)
        return a->weight_ns > b->weight_ns ? -1 : 1;
    return compare_ids(left, right);
}

// One entry a label, then one entry a coroutine, the heaviest first.
static int find_coroutines(speedscope_t *speedscope)
{
    const gp_report_t *report = speedscope->report;
    size_t count = 0;

    speedscope->coroutines = calloc((size_t)report->label_count + 1, sizeof(coroutine_t));
    if (speedscope->coroutines == NULL)
        return -ENOMEM;
    coroutine_t *all = speedscope->coroutines;
    for (uint32_t i = 0; i < report->label_count; i++)
        all[i].label = &report->labels[i];
    for (uint32_t i = 0; i < report->row_count; i++)
        if (report->rows[i].label != 0)
            all[report->rows[i].label - 1].weight_ns += report->rows[i].weight_ns;
    if (report->label_count > 0)
        qsort(all, report->label_count, sizeof(*all), compare_ids);
    for (uint32_t i = 0; i < report->label_count; i++) {
        if (count > 0 && compare_ids(&all[count - 1], &all[i]) == 0)
            all[count - 1].weight_ns += all[i].weight_ns;
        else
            all[count++] = all[i];
    }
    if (count > 0)
        qsort(all, count, sizeof(*all), compare_weights);
    speedscope->count = count;
    return 0;
}

static bool is_row_of(const speedscope_t *speedscope, const gp_row_t *row, const coroutine_t *of)
{
    return of == NULL ||
           (row->label != 0 &&
            speedscope->report->labels[row->label - 1].coroutine_id == of->label->coroutine_id);
}

static void put_stack(speedscope_t *speedscope, const gp_row_t *row)
{
    gp_json_t *json = &speedscope->json;

    gp_json_line(json);
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < row->depth; i++)
        gp_json_uint(json, speedscope->table->of_frame[row->frames[i]]);
    gp_json_close(json, ']');
}

// A profile of a coroutine; NULL = of everything.
static void put_profile(speedscope_t *speedscope, const coroutine_t *of, const char *name)
{
    const gp_report_t *report = speedscope->report;
    gp_json_t *json = &speedscope->json;

    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_text(json, "type", "sampled");
    gp_json_key_text(json, "name", name);
    gp_json_key_text(json, "unit", "nanoseconds");
    gp_json_key_uint(json, "startValue", 0);
    gp_json_key_uint(json, "endValue", of ? of->weight_ns : report->total_ns);
    gp_json_key(json, "samples");
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < report->row_count; i++)
        if (is_row_of(speedscope, &report->rows[i], of))
            put_stack(speedscope, &report->rows[i]);
    gp_json_close(json, ']');
    gp_json_key(json, "weights");
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < report->row_count; i++)
        if (is_row_of(speedscope, &report->rows[i], of))
            gp_json_uint(json, report->rows[i].weight_ns);
    gp_json_close(json, ']');
    gp_json_close(json, '}');
}

static void put_coroutine(speedscope_t *speedscope, const coroutine_t *coroutine)
{
    const char *label = coroutine->label->coroutine ? coroutine->label->coroutine : "";
    char name[320];

    if (label[0] == '[') // "[thread main]"
        snprintf(name, sizeof(name), "%s", label);
    else
        snprintf(name, sizeof(name), "coroutine %" PRIu64 "%s%s", coroutine->label->coroutine_id,
                 label[0] != '\0' ? " " : "", label);
    put_profile(speedscope, coroutine, name);
}

static void put_frames(speedscope_t *speedscope)
{
    gp_json_t *json = &speedscope->json;

    gp_json_key(json, "shared");
    gp_json_open(json, '{');
    gp_json_key(json, "frames");
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < speedscope->table->function_count; i++) {
        const gp_frame_t *frame = speedscope->table->functions[i].frame;
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

static void put_all(speedscope_t *speedscope)
{
    gp_json_t *json = &speedscope->json;

    gp_json_open(json, '{');
    gp_json_key_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    gp_json_key_text(json, "name", speedscope->report->title);
    gp_json_key_text(json, "exporter", "greenprof");
    gp_json_key_uint(json, "activeProfileIndex", 0);
    gp_json_line(json);
    put_frames(speedscope);
    gp_json_line(json);
    gp_json_key(json, "profiles");
    gp_json_open(json, '[');
    put_profile(speedscope, NULL, "CPU time");
    for (size_t i = 0; i < speedscope->count && i < COROUTINES_MAX; i++)
        put_coroutine(speedscope, &speedscope->coroutines[i]);
    gp_json_close(json, ']');
    gp_json_close(json, '}');
    putc('\n', json->out);
}

int gp_speedscope_write(const gp_report_t *report, FILE *out)
{
    speedscope_t speedscope = {
        .report = report,
        .table = gp_function_table_create_uncharged(report),
        .json = {.out = out},
    };
    int result = speedscope.table != NULL ? find_coroutines(&speedscope) : -ENOMEM;

    if (result == 0)
        put_all(&speedscope);
    gp_function_table_free(speedscope.table);
    free(speedscope.coroutines);
    return result;
}
