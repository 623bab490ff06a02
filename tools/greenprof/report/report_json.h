// SPDX-License-Identifier: MIT
// `report --json`: doc/json.md is its schema.
#pragma once

#include "export/write/json_text.h"
#include "stats.h"
#include "tables.h"

enum { GP_REPORT_JSON_VERSION = 1 };

// Write what stands in the header, and begin the rows.
//   by: what they are; NULL = functions.
void gp_report_json_begin(gp_json_t *json, const gp_input_t *source, const gp_report_t *report, const char *by);
void gp_report_json_end(gp_json_t *json);

// A row for each function. Returns 0 or -ENOMEM.
int gp_report_json_functions(gp_json_t *json, const gp_stats_t *stats, gp_row_limits_t restrictions);

// Members of an object: times by state, in ns; null = not known.
//   parts_ns: uint64_t[GP_KIND_COUNT].
void gp_report_json_states(gp_json_t *json, const uint64_t *parts_ns, bool is_known);

// A number, or null.
void gp_report_json_known(gp_json_t *json, const char *key, bool is_known, uint64_t value);

// Apply the restrictions without a word. Returns how many rows are left.
size_t gp_report_json_restrict(gp_row_limits_t restrictions, uint32_t *rows, size_t count, gp_row_limit_name_t name,
                               const void *context);
