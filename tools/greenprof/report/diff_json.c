// SPDX-License-Identifier: MIT
// `diff --json`: doc/json.md is its schema.
#include <inttypes.h>
#include <math.h>

#include "diff.h"
#include "report_json.h"

enum { JSON_VERSION = 1 };

// Not known, or without an end: null.
static void diff_json_number(gp_json_t *json, const char *key, double value)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%.6g", value);
    gp_json_key(json, key);
    if (isfinite(value))
        gp_json_raw(json, text, (size_t)len);
    else
        gp_json_null(json);
}

static void diff_json_side(gp_json_t *json, const char *key, const gp_diff_side_t *side)
{
    gp_json_key(json, key);
    gp_json_open(json, '{');
    gp_json_key_text(json, "file", side->source.path);
    gp_json_key_uint(json, "total_ns", side->report->total_ns);
    gp_json_key_uint(json, "duration_ns", side->report->duration_ns);
    gp_json_key_uint(json, "samples", side->report->samples);
    gp_json_close(json, '}');
}

void gp_diff_json_begin(const gp_diff_t *diff, const char *by, const char *order)
{
    gp_json_t *json = diff->json;
    gp_json_open(json, '{');
    gp_json_key_uint(json, "version", JSON_VERSION);
    diff_json_side(json, "base", &diff->sides[GP_BASE]);
    diff_json_side(json, "file", &diff->sides[GP_FILE]);
    gp_json_key_text(json, "by", by);
    gp_json_key_text(json, "order", order);
    gp_json_key_text(json, "unit", diff->unit);
    gp_json_key_uint(json, "comparisons", diff->comparisons);
    diff_json_number(json, "z_critical", diff->z_critical);
    gp_json_key(json, "rows");
    gp_json_open(json, '[');
    gp_json_line(json);
}

void gp_diff_json_change(gp_json_t *json, const char *key, const gp_change_t *change)
{
    gp_json_key(json, key);
    gp_json_open(json, '{');
    diff_json_number(json, "base", change->value[GP_BASE]);
    diff_json_number(json, "file", change->value[GP_FILE]);
    diff_json_number(json, "change", change->difference);
    diff_json_number(json, "error", change->error);
    diff_json_number(json, "z", change->z);
    gp_json_key(json, "significant");
    gp_json_bool(json, change->is_significant);
    gp_json_close(json, '}');
}

void gp_diff_json_function(gp_json_t *json, const gp_diff_function_t *function)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "function", function->name);
    gp_json_key_text(json, "file", function->pseudo ? "" : function->file);
    gp_diff_json_change(json, "own", &function->own_change);
    gp_diff_json_change(json, "total", &function->total_change);
    gp_json_close(json, '}');
    gp_json_line(json);
}

void gp_diff_json_end(gp_json_t *json)
{
    gp_json_close(json, ']');
    gp_report_json_end(json);
}
